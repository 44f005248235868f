"""Qwen2-MoE (Qwen1.5-MoE) and Qwen3-MoE: Qwen's layers, with experts in the place of most or all feed-forward networks.

The former has one more expert that all tokens go through, and does not bring the weights of the chosen ones to the sum 1.

Source: Yang et al. 2024, "Qwen2 Technical Report", section 2.2.2; Yang et al. 2025, "Qwen3 Technical Report", section 2, and
the weights published with them.
"""

from collections.abc import Collection
from typing import Any

from tokenizers import Tokenizer as Backend

from vizformer.checkpoints.files.untrusted_folder import Folder
from vizformer.checkpoints.hugging_face.experts_like import MOST_EXPERTS, as_stored, experts, sparse_layers, weights
from vizformer.checkpoints.hugging_face.family import Export, Family, Options
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.llama_export import FITS, WRITTEN, export
from vizformer.checkpoints.hugging_face.llama_like import UNUSED, decoder, ties
from vizformer.checkpoints.tokenizers.vocabularies import qwen
from vizformer.config import ModelConfig
from vizformer.messages import N_


def second(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    """The options of Qwen2-MoE."""
    last = fields.value("max_window_layers")
    options, has_head = decoder(
        fields, names, windowed=lambda layer: layer % 2 == 0 and type(last) is int and layer < last
    )
    shared = fields.size("shared_expert_intermediate_size")
    found = _experts(fields, options, names, "num_experts")
    if found:
        found["d_shared_expert"] = shared
    return {
        **options,
        **found,
        "bias": False,
        "attention_bias": "qkv" if fields.flag("qkv_bias") else "none",
    }, has_head


def third(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    """The options of Qwen3-MoE."""
    said = [fields.written[name] for name in ("num_experts", "num_local_experts") if name in fields.written]
    if len(said) == 2 and said[0] != said[1]:  # here `transformers` follows the first name, elsewhere the second
        fields.refuse(
            "num_local_experts",
            N_("num_experts and num_local_experts are two names of one thing: leave one of them out"),
        )
    options, has_head = decoder(fields, names)
    found = _experts(fields, options, names, "num_local_experts")
    biases = "all" if fields.flag("attention_bias") else "none"
    return {**options, **found, "bias": False, "attention_bias": biases, "qk_norm": True}, has_head


def _experts(fields: Fields, options: Options, names: Collection[str], number: str) -> Options:
    layers = sparse_layers(fields, options["n_decoder_layers"])
    return experts(fields, options, names, number=number, width="moe_intermediate_size", none=True, layers=layers)


def tokenizer(folder: Folder) -> Backend:
    """vocab.json and merges.txt."""
    return qwen(folder)


def exported(config: ModelConfig, has_head: bool) -> dict[str, Any]:
    """config.json of Qwen3-MoE, and what Qwen2-MoE has in common with it."""
    said = {name: value for name, value in export(config, has_head).items() if name != "mlp_bias"}
    return {
        **said,
        "architectures": ["Qwen3MoeForCausalLM" if has_head else "Qwen3MoeModel"],
        "num_experts": config.n_experts,
        "num_experts_per_tok": config.experts_per_token,
        "moe_intermediate_size": config.expert_width,
        "norm_topk_prob": config.expert_weights == "renormalised",
        "decoder_sparse_step": 1,
        "mlp_only_layers": [layer for layer in range(config.n_decoder_layers) if not config.has_experts(layer)],
        "use_sliding_window": False,
    }


def exported_second(config: ModelConfig, has_head: bool) -> dict[str, Any]:
    """config.json of Qwen2-MoE."""
    said = {
        name: value for name, value in exported(config, has_head).items() if name not in ("attention_bias", "head_dim")
    }
    return {
        **said,
        "architectures": ["Qwen2MoeForCausalLM" if has_head else "Qwen2MoeModel"],
        "qkv_bias": config.qkv_bias,
        "shared_expert_intermediate_size": config.d_shared_expert,
    }


EXPERTS: dict[str, Collection[Any]] = dict(bias=[False], n_experts=range(1, MOST_EXPERTS))
WITH_EXPERTS = (*WRITTEN, "experts_per_token", "expert_weights", "d_expert", "expert_layers", "attention_bias")
QWEN2_MOE = Family(
    name="Qwen2-MoE",
    types=("qwen2_moe",),
    prefix="model.",
    head="lm_head.",
    config=second,
    weights=weights,
    tokenizer=tokenizer,
    ties=ties,
    by_names=as_stored,
    unused=UNUSED,
    exports=(
        Export(
            "qwen2_moe",
            {
                **FITS,
                **EXPERTS,
                "head_dim": [None],
                "attention_bias": ["qkv", "none", "same"],
                "d_shared_expert": range(1, 2**31),
            },
            WITH_EXPERTS,
            exported_second,
        ),
    ),
)
QWEN3_MOE = Family(
    name="Qwen3-MoE",
    types=("qwen3_moe",),
    prefix="model.",
    head="lm_head.",
    config=third,
    weights=weights,
    tokenizer=tokenizer,
    ties=ties,
    by_names=as_stored,
    unused=UNUSED,
    exports=(
        Export(
            "qwen3_moe",
            {**FITS, **EXPERTS, "attention_bias": ["all", "none", "same"], "qk_norm": [True]},
            WITH_EXPERTS,
            exported,
        ),
    ),
)
