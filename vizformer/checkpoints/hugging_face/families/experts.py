"""LLaMA's relatives with experts in the place of feed-forward networks.  A row for each model type that differs.

Source: what stands above each row, and the weights published with it.
"""

import re
from collections.abc import Collection
from dataclasses import replace
from functools import partial
from typing import Any

from vizformer.checkpoints.hugging_face.experts_like import (
    LIKE,
    MOST_EXPERTS,
    RENAMED,
    decoder_with_experts,
    dense_first,
    experts,
    qwen_experts,
    routed_experts,
    weights,
)
from vizformer.checkpoints.hugging_face.family import Export, Family, Options, only, reading
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.llama_like import (
    ATTENTION,
    FITS,
    OUT,
    WRITTEN,
    attention_bias,
    decoder,
    export,
    factors,
)
from vizformer.checkpoints.tokenizers.sentencepiece_files import sentencepiece_or_refuse
from vizformer.checkpoints.tokenizers.vocabularies import qwen
from vizformer.config import ModelConfig
from vizformer.messages import N_

FIRST_NAMES = {"gate_proj": "w1", "up_proj": "w3", "down_proj": "w2"}  # of the matrices of Mixtral's experts
NORMS_AFTER = {
    **ATTENTION,
    **OUT,
    "post_attention_layernorm": ["self_norm"],
    "post_feedforward_layernorm": ["feedforward_norm"],
}
QK_NORMS_OVER_ALL = {"qk_norm": True, "qk_norm_over": "all"}
LOCAL = partial(decoder_with_experts, number="num_local_experts", renormalised=True)
SEVERAL: dict[str, Collection[Any]] = dict(bias=[False], n_experts=range(1, MOST_EXPERTS))
WITH_EXPERTS = (*WRITTEN, "experts_per_token", "expert_weights", "d_expert", "expert_layers", "attention_bias")


def _qwen_2(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    last = fields.value("max_window_layers")
    options, has_head = decoder(
        fields, names, windowed=lambda layer: layer % 2 == 0 and type(last) is int and layer < last
    )
    return {**options, **qwen_experts(fields, options, names, "num_experts", shared=True)}, has_head


def _qwen_3(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    said = [fields.written[name] for name in ("num_experts", "num_local_experts") if name in fields.written]
    if len(said) == 2 and said[0] != said[1]:  # here `transformers` follows the first name, elsewhere the second
        fields.refuse(
            "num_local_experts", "num_experts and num_local_experts are two names of one thing: leave one of them out"
        )
    options, has_head = decoder(fields, names)
    return {**options, **qwen_experts(fields, options, names, "num_local_experts"), "qk_norm": True}, has_head


def _glm_4(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    options, has_head = decoder(fields, names, part=True)
    layers = dense_first(fields, options["n_decoder_layers"])
    fields.ignore("num_nextn_predict_layers", "num_mtp_layers")
    found = routed_experts(fields, options, names, layers)
    return {**options, **found, "qk_norm": fields.flag("use_qk_norm")}, has_head


def _minimax_m2(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    if fields.value("rotary_dim") is not None:  # of its first files: how many numbers of a head turn
        fields.raw.setdefault("partial_rotary_factor", fields.size("rotary_dim") / fields.size("head_dim"))
    fields.raw.setdefault("partial_rotary_factor", 1.0)
    options, has_head = decoder(fields, names, part=True)
    found = experts(fields, options, names, number="num_local_experts", renormalised=True)
    return {**options, **found, "router_scores": "sigmoid", "router_correction": True}, has_head


def export_mixtral(config: ModelConfig, has_head: bool) -> dict[str, Any]:
    """config.json of Mixtral."""
    return {
        **_without(export(config, has_head), "attention_bias", "mlp_bias"),
        "architectures": ["MixtralForCausalLM" if has_head else "MixtralModel"],
        "sliding_window": config.sliding_window,
        "num_local_experts": config.n_experts,
        "num_experts_per_tok": config.experts_per_token,
    }


def export_qwen_3(config: ModelConfig, has_head: bool) -> dict[str, Any]:
    """config.json of Qwen3-MoE, and what Qwen2-MoE has in common with it."""
    return {
        **_without(export(config, has_head), "mlp_bias"),
        "architectures": ["Qwen3MoeForCausalLM" if has_head else "Qwen3MoeModel"],
        "num_experts": config.n_experts,
        "num_experts_per_tok": config.experts_per_token,
        "moe_intermediate_size": config.expert_width,
        "norm_topk_prob": config.expert_weights == "renormalised",
        "decoder_sparse_step": 1,
        "mlp_only_layers": [layer for layer in range(config.n_decoder_layers) if not config.has_experts(layer)],
        "use_sliding_window": False,
    }


def export_qwen_2(config: ModelConfig, has_head: bool) -> dict[str, Any]:
    """config.json of Qwen2-MoE."""
    return {
        **_without(export_qwen_3(config, has_head), "attention_bias", "head_dim"),
        "architectures": ["Qwen2MoeForCausalLM" if has_head else "Qwen2MoeModel"],
        "qkv_bias": config.qkv_bias,
        "shared_expert_intermediate_size": config.d_shared_expert,
    }


def _without(said: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in said.items() if name not in names}


def first_names(name: str) -> str:
    """The first names of Mixtral's tensors, which the published files have."""
    name = re.sub(r"(\.experts\.\d+)\.(\w+)\.", lambda found: f"{found[1]}.{FIRST_NAMES[found[2]]}.", name)
    return name.replace(".mlp.", ".block_sparse_moe.")


FAMILIES: tuple[Family, ...] = (
    # Mistral's layers.  Jiang et al. 2024, "Mixtral of Experts", section 2.
    replace(
        LIKE,
        name="Mixtral",
        types=("mixtral",),
        config=reading(LOCAL, {"bias": False}),
        tokenizer=sentencepiece_or_refuse,
        renamed=RENAMED,
        exports=(
            Export(
                "mixtral",
                {**FITS, **SEVERAL, "attention_bias": ["same", "none"]},
                (*WRITTEN, "sliding_window", "experts_per_token"),
                export_mixtral,
                first_names,
            ),
        ),
    ),
    # Also Qwen1.5-MoE: one more expert that all tokens go through; the weights of the chosen ones are not brought to the
    # sum 1.  Yang et al. 2024, "Qwen2 Technical Report", section 2.2.2.
    replace(
        LIKE,
        name="Qwen2-MoE",
        types=("qwen2_moe",),
        config=reading(_qwen_2, attention_bias("qkv", "qkv_bias")),
        tokenizer=qwen,
        exports=(
            Export(
                "qwen2_moe",
                {
                    **FITS,
                    **SEVERAL,
                    "head_dim": [None],
                    "attention_bias": ["qkv", "none", "same"],
                    "d_shared_expert": range(1, 2**31),
                },
                WITH_EXPERTS,
                export_qwen_2,
            ),
        ),
    ),
    # Yang et al. 2025, "Qwen3 Technical Report", section 2.
    replace(
        LIKE,
        name="Qwen3-MoE",
        types=("qwen3_moe",),
        config=reading(_qwen_3, attention_bias("all")),
        tokenizer=qwen,
        exports=(
            Export(
                "qwen3_moe",
                {**FITS, **SEVERAL, "attention_bias": ["all", "none", "same"], "qk_norm": [True]},
                WITH_EXPERTS,
                export_qwen_3,
            ),
        ),
    ),
    # Zhipu AI 2025, "GLM-4.5: Agentic, Reasoning, and Coding (ARC) Foundation Models", section 2.1.
    replace(
        LIKE,
        name="GLM-4 MoE",
        types=("glm4_moe",),
        config=reading(_glm_4, attention_bias("qkv")),
        renamed={r"\.mlp\.shared_experts\.": ".mlp.shared_expert."},
        unused={
            **LIKE.unused,
            r"layers\.(46|92)\..*": N_("layers that guess further tokens ahead, which no forward needs"),
        },
    ),
    # Half of each head turned, norms of queries and keys over all heads.  MiniMax 2025, "MiniMax-M2".
    replace(
        LIKE,
        name="MiniMax-M2",
        types=("minimax_m2",),
        config=reading(_minimax_m2, {"bias": False}, QK_NORMS_OVER_ALL),
        renamed=RENAMED,
    ),
    # OLMo's layers; queries and keys are normalised over all heads together.  FlexOlmo normalises what a sublayer has found,
    # as OLMo 2 does.  Muennighoff et al. 2024, "OLMoE: Open Mixture-of-Experts Language Models", section 2; Shi et al. 2025,
    # "FlexOlmo: Open Language Models for Flexible Data Use".
    replace(
        LIKE,
        name="OLMoE",
        types=("olmoe",),
        config=reading(decoder_with_experts, only(clip_qkv=None), attention_bias("all"), QK_NORMS_OVER_ALL),
    ),
    replace(
        LIKE,
        name="OLMoE",
        types=("flex_olmo",),
        config=reading(decoder_with_experts, attention_bias("all"), QK_NORMS_OVER_ALL, {"norm_order": "output"}),
        weights=partial(weights, layer=NORMS_AFTER),
    ),
    # Granite's layers.  The router's scores are cut to the k largest before their softmax: these weights are the
    # renormalised probabilities.  Granite Team 2024, "Granite 3.0 Language Models", section 2.
    replace(
        LIKE,
        name="GraniteMoE",
        types=("granitemoe",),
        config=reading(LOCAL, attention_bias("all"), factors),
        renamed={
            r"\.block_sparse_moe\.": ".mlp.",
            r"\.mlp\.input_linear\.weight$": ".mlp.experts.gate_up_proj",
            r"\.mlp\.output_linear\.weight$": ".mlp.experts.down_proj",
            r"\.mlp\.router\.(layer\.)?": ".mlp.gate.",
        },
    ),
)
