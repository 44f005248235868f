"""OLMoE and FlexOlmo: OLMo's layers, with experts in the place of each feed-forward network.

OLMoE normalises what a sublayer reads, FlexOlmo what it has found, as OLMo 2 does; both normalise queries and keys over all
heads together.

Source: Muennighoff et al. 2024, "OLMoE: Open Mixture-of-Experts Language Models", section 2; Shi et al. 2025, "FlexOlmo:
Open Language Models for Flexible Data Use"; and the weights published with them.
"""

from collections.abc import Collection

from vizformer.checkpoints.hugging_face.experts_like import LAYER, as_stored, experts, weights
from vizformer.checkpoints.hugging_face.family import Family, Options
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.llama_like import ATTENTION, OUT, UNUSED, decoder, ties
from vizformer.checkpoints.tensors.tensor_map import Part
from vizformer.checkpoints.tokenizers.refusals import only_tokenizer_json
from vizformer.config import ModelConfig

AFTER = {
    **ATTENTION,
    **OUT,
    "post_attention_layernorm": ["self_norm"],
    "post_feedforward_layernorm": ["feedforward_norm"],
}


def config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    """The options of our model."""
    options, has_head = decoder(fields, names)
    flex = fields.kind == "flex_olmo"
    if not flex:
        fields.only("clip_qkv", None)
    return {
        **options,
        **experts(fields, options, names),
        "bias": False,
        "attention_bias": "all" if fields.flag("attention_bias") else "none",
        "norm_order": "output" if flex else "pre",
        "qk_norm": True,
        "qk_norm_over": "all",
    }, has_head


def tensors(config: ModelConfig) -> list[Part]:
    """What becomes of every tensor."""
    return weights(config, AFTER if config.norm_order == "output" else LAYER)


FAMILY = Family(
    name="OLMoE",
    types=("olmoe", "flex_olmo"),
    prefix="model.",
    head="lm_head.",
    config=config,
    weights=tensors,
    tokenizer=only_tokenizer_json,
    ties=ties,
    by_names=as_stored,
    unused=UNUSED,
)
