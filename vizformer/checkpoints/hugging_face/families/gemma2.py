"""Gemma 2, and Gemma 3's language model: norms around every sublayer, a sliding window in some of the layers.

Gemma 2 bends scores and logits by soft caps.  Gemma 3 has norms of queries and keys instead, and another base of rotary
positions where there is a window.

Source: Gemma Team 2024, "Gemma 2: Improving Open Language Models at a Practical Size", section 2; Gemma Team 2025, "Gemma 3
Technical Report", section 2; and the weights published with them.
"""

from collections.abc import Collection
from dataclasses import replace

from vizformer.checkpoints.hugging_face.family import Family, Options, reading, relative
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.llama_like import (
    ATTENTION,
    FEEDFORWARD,
    FOUR_NORMS,
    LIKE,
    OUT,
    QK_NORMS,
    attention_bias,
    cap,
    decoder,
    own_scale,
    tensors,
)
from vizformer.checkpoints.hugging_face.rotary import rope_of_layer_types
from vizformer.checkpoints.hugging_face.sliding_window import every_nth, windowed_layers
from vizformer.checkpoints.tensors.tensor_map import Part
from vizformer.config import ModelConfig


def _second(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    fields.size("sliding_window")  # there is always one
    options, has_head = decoder(fields, names, windowed=lambda layer: layer % 2 == 0, activation="hidden_activation")
    return {**options, "score_cap": cap(fields, "attn_logit_softcapping")}, has_head


def _third(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    windowed = every_nth(fields)

    def turning(fields: Fields) -> Options:
        layers = windowed_layers(fields, fields.size("num_hidden_layers"), windowed)
        return rope_of_layer_types(fields, layers, old_local="rope_local_base_freq")

    options, has_head = decoder(fields, names, windowed=windowed, turning=turning, activation="hidden_activation")
    fields.ignore("attn_logit_softcapping")  # which no layer of this family reads in `transformers`
    return {**options, "qk_norm": True}, has_head


def _both(fields: Fields, options: Options) -> Options:
    fields.only("use_bidirectional_attention", None, False)
    return {
        **attention_bias("all")(fields, options),
        "attention_scale": own_scale(fields, options),
        "norm_order": "sandwich",
        "norm_offset": True,
        "scaled_embedding": True,
        "logit_cap": cap(fields, "final_logit_softcapping"),
    }


def weights(config: ModelConfig) -> list[Part]:
    norms = {**FOUR_NORMS, **(QK_NORMS if config.qk_norm else {})}
    return tensors(config, {**norms, **ATTENTION, **OUT, **FEEDFORWARD})


GEMMA_2 = relative(LIKE, "Gemma 2 and 3", "gemma2", _second, _both, weights=weights)
FAMILIES: tuple[Family, ...] = (GEMMA_2, replace(GEMMA_2, types=("gemma3_text",), config=reading(_third, _both)))
