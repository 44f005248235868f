"""OLMoE and FlexOlmo: OLMo's layers, with experts in the place of each feed-forward network.

OLMoE normalises what a sublayer reads, FlexOlmo what it has found, as OLMo 2 does; both normalise queries and keys over all
heads together.

Source: Muennighoff et al. 2024, "OLMoE: Open Mixture-of-Experts Language Models", section 2; Shi et al. 2025, "FlexOlmo:
Open Language Models for Flexible Data Use"; and the weights published with them.
"""

from collections.abc import Collection
from typing import Any

from vizformer.checkpoints.hugging_face.experts_like import LAYER, as_stored, experts, weights
from vizformer.checkpoints.hugging_face.family import Family, Options
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.llama_like import ATTENTION, OUT, UNUSED, decoder, ties
from vizformer.checkpoints.tensors.tensor_map import Part
from vizformer.checkpoints.tokenizers.refusals import only_tokenizer_json
from vizformer.config import ModelConfig

OLMOE: dict[str, Any] = {
    "vocab_size": 50_304,
    "hidden_size": 2048,
    "intermediate_size": 2048,
    "num_hidden_layers": 16,
    "num_attention_heads": 16,
    "hidden_act": "silu",
    "max_position_embeddings": 4096,
    "rms_norm_eps": 1e-5,
    "tie_word_embeddings": False,
    "pad_token_id": 1,
    "eos_token_id": 50_279,
    "rope_theta": 10_000.0,
    "attention_bias": False,
    "clip_qkv": None,
    "num_experts_per_tok": 8,
    "num_experts": 64,
    "norm_topk_prob": False,
}
FLEX: dict[str, Any] = {
    **{name: value for name, value in OLMOE.items() if name != "clip_qkv"},
    "vocab_size": 100_352,
    "hidden_size": 4096,
    "intermediate_size": 11_008,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "rms_norm_eps": 1e-6,
    "pad_token_id": 100_277,
    "eos_token_id": 100_257,
    "rope_theta": 500_000.0,
    "num_experts_per_tok": 5,
    "num_experts": 7,
}
AFTER = {
    **ATTENTION,
    **OUT,
    "post_attention_layernorm": ["self_norm"],
    "post_feedforward_layernorm": ["feedforward_norm"],
}


def config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    """The options of our model."""
    options, has_head = decoder(fields, names)
    flex = fields.raw.get("model_type") == "flex_olmo"
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
    defaults={"olmoe": OLMOE, "flex_olmo": FLEX},
    prefix="model.",
    head="lm_head.",
    config=config,
    weights=tensors,
    tokenizer=only_tokenizer_json,
    ties=ties,
    by_names=as_stored,
    unused=UNUSED,
    aliases={"num_local_experts": "num_experts"},
)
