"""OLMo 2 and 3: LLaMA's layers, each sublayer's output normalised before it is added, queries and keys over all heads.

EXAONE 4 normalises every head of queries and keys by itself, and where some layers have a window only these know positions.

In OLMo 3 three layers out of four have a sliding window; only the others are slowed down for longer texts.

Source: OLMo Team 2024, "2 OLMo 2 Furious", section 2.1; OLMo Team 2025, "Olmo 3"; LG AI Research 2025, "EXAONE 4.0: Unified
Large Language Models Integrating Non-reasoning and Reasoning Modes", section 2.1; and the weights published with them.
"""

from collections.abc import Collection
from dataclasses import replace
from functools import partial

from vizformer.checkpoints.hugging_face.family import Family, Options, reading, relative
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.llama_like import (
    ATTENTION,
    FEEDFORWARD,
    LIKE,
    OUT,
    QK_NORMS,
    attention_bias,
    decoder,
    tensors,
)
from vizformer.checkpoints.hugging_face.rotary import rope_of_layer_types
from vizformer.checkpoints.hugging_face.sliding_window import turning_in, windowed_layers

LAYER = {
    **ATTENTION,
    **OUT,
    **QK_NORMS,
    **FEEDFORWARD,
    "post_attention_layernorm": ["self_norm"],
    "post_feedforward_layernorm": ["feedforward_norm"],
}
NORMED = {"norm_order": "output", "qk_norm": True, "qk_norm_over": "all"}


def _third(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    fields.size("sliding_window")  # there is always one
    return decoder(fields, names, windowed=_windowed, turning=_turning)


def _windowed(layer: int) -> bool:
    return (layer + 1) % 4 != 0


def _turning(fields: Fields) -> Options:
    layers = windowed_layers(fields, fields.size("num_hidden_layers"), _windowed)
    return rope_of_layer_types(fields, layers, local=fields.defaults["rope_theta"])


def _exaone_4(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    n_layers, every = fields.size("num_hidden_layers"), 1
    if fields.value("sliding_window") is None:
        if fields.value("layer_types") is None:  # `transformers` would count the layers by 0
            fields.refuse("layer_types", "where sliding_window is null it must have an entry for each layer")
        fields.ignore("sliding_window_pattern")
        return decoder(fields, names)
    if fields.value("layer_types") is None:
        every = fields.size("sliding_window_pattern")

    def windowed(layer: int) -> bool:
        return (layer + 1) % every != 0

    fields.ignore("sliding_window_pattern")
    turned = windowed_layers(fields, n_layers, windowed)
    options, has_head = decoder(fields, names, windowed=windowed)
    return {**options, **turning_in(turned, options)}, has_head


OLMO_2 = relative(
    LIKE, "OLMo 2", "olmo2", decoder, attention_bias("all"), NORMED, weights=partial(tensors, template=LAYER)
)
FAMILIES: tuple[Family, ...] = (
    OLMO_2,
    replace(OLMO_2, types=("olmo3",), config=reading(_third, attention_bias("all"), NORMED)),
    relative(OLMO_2, "EXAONE 4", "exaone4", _exaone_4, {"bias": False, "norm_order": "output", "qk_norm": True}),
)
