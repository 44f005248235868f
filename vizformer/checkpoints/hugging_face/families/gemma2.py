"""Gemma 2, and Gemma 3's language model: norms around every sublayer, a sliding window in some of the layers.

Gemma 2 bends scores and logits by soft caps.  Gemma 3 has norms of queries and keys instead, and another base of rotary
positions where there is a window.

Source: Gemma Team 2024, "Gemma 2: Improving Open Language Models at a Practical Size", section 2; Gemma Team 2025, "Gemma 3
Technical Report", section 2; and the weights published with them.
"""

from collections.abc import Collection

from vizformer.checkpoints.hugging_face.family import Family, Options
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.llama_like import (
    ATTENTION,
    FEEDFORWARD,
    FOUR_NORMS,
    OUT,
    QK_NORMS,
    UNUSED,
    decoder,
    own_scale,
    tensors,
    ties,
)
from vizformer.checkpoints.hugging_face.rotary import rope_of_layer_types
from vizformer.checkpoints.hugging_face.sliding_window import windowed_layers
from vizformer.checkpoints.tensors.tensor_map import Part
from vizformer.checkpoints.tokenizers.refusals import only_tokenizer_json
from vizformer.config import ModelConfig


def config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    """The options of our model."""
    fields.size("sliding_window")  # there is always one
    if fields.kind == "gemma2":
        options, has_head = decoder(fields, names, windowed=_every_second, activation="hidden_activation")
        options["score_cap"] = _cap(fields, "attn_logit_softcapping")
    else:
        options, has_head = _of_gemma_3(fields, names)
    fields.only("use_bidirectional_attention", None, False)
    return {
        **options,
        "bias": False,
        "attention_bias": "all" if fields.flag("attention_bias") else "none",
        "attention_scale": own_scale(fields, options),
        "norm_order": "sandwich",
        "norm_offset": True,
        "scaled_embedding": True,
        "logit_cap": _cap(fields, "final_logit_softcapping"),
    }, has_head


def _every_second(layer: int) -> bool:
    return layer % 2 == 0


def _of_gemma_3(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    # Old files do not list the layers.
    every = fields.size("sliding_window_pattern") if fields.value("layer_types") is None else 1

    def windowed(layer: int) -> bool:
        return (layer + 1) % every != 0

    def turning(fields: Fields) -> Options:
        layers = windowed_layers(fields, fields.size("num_hidden_layers"), windowed)
        return rope_of_layer_types(fields, layers, old_local="rope_local_base_freq")

    options, has_head = decoder(fields, names, windowed=windowed, turning=turning, activation="hidden_activation")
    fields.ignore("attn_logit_softcapping")  # which no layer of this family reads in `transformers`
    return {**options, "qk_norm": True}, has_head


def _cap(fields: Fields, name: str) -> float | None:
    return None if fields.value(name) is None else fields.number(name)


def weights(config: ModelConfig) -> list[Part]:
    """What becomes of every tensor."""
    norms = {**FOUR_NORMS, **(QK_NORMS if config.qk_norm else {})}
    return tensors(config, {**norms, **ATTENTION, **OUT, **FEEDFORWARD})


FAMILY = Family(
    name="Gemma 2 and 3",
    types=("gemma2", "gemma3_text"),
    prefix="model.",
    head="lm_head.",
    config=config,
    weights=weights,
    tokenizer=only_tokenizer_json,
    ties=ties,
    unused=UNUSED,
)
