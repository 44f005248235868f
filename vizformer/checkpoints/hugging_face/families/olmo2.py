"""OLMo 2 and 3: LLaMA's layers, each sublayer's output normalised before it is added, queries and keys over all heads.

In OLMo 3 three layers out of four have a sliding window; only the others are slowed down for longer texts.

Source: OLMo Team 2024, "2 OLMo 2 Furious", section 2.1; OLMo Team 2025, "Olmo 3"; and the weights published with them.
"""

from collections.abc import Collection

from vizformer.checkpoints.hugging_face.family import Family, Options
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.llama_like import (
    ATTENTION,
    FEEDFORWARD,
    OUT,
    QK_NORMS,
    UNUSED,
    decoder,
    tensors,
    ties,
)
from vizformer.checkpoints.hugging_face.rotary import rope_of_layer_types
from vizformer.checkpoints.hugging_face.sliding_window import windowed_layers
from vizformer.checkpoints.tensors.tensor_map import Part
from vizformer.checkpoints.tokenizers.refusals import only_tokenizer_json
from vizformer.config import ModelConfig

LAYER = {
    **ATTENTION,
    **OUT,
    **QK_NORMS,
    **FEEDFORWARD,
    "post_attention_layernorm": ["self_norm"],
    "post_feedforward_layernorm": ["feedforward_norm"],
}


def config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    """The options of our model."""
    if fields.kind == "olmo3":
        fields.size("sliding_window")  # there is always one
        options, has_head = decoder(fields, names, windowed=_windowed, turning=_turning)
    else:
        options, has_head = decoder(fields, names)
    return {
        **options,
        "bias": False,
        "attention_bias": "all" if fields.flag("attention_bias") else "none",
        "norm_order": "output",
        "qk_norm": True,
        "qk_norm_over": "all",
    }, has_head


def _windowed(layer: int) -> bool:
    return (layer + 1) % 4 != 0


def _turning(fields: Fields) -> Options:
    layers = windowed_layers(fields, fields.size("num_hidden_layers"), _windowed)
    return rope_of_layer_types(fields, layers, local=fields.defaults["rope_theta"])


def weights(config: ModelConfig) -> list[Part]:
    """What becomes of every tensor."""
    return tensors(config, LAYER)


FAMILY = Family(
    name="OLMo 2",
    types=("olmo2", "olmo3"),
    prefix="model.",
    head="lm_head.",
    config=config,
    weights=weights,
    tokenizer=only_tokenizer_json,
    ties=ties,
    unused=UNUSED,
)
