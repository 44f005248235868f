"""DeepSeek-V2, DeepSeek-V3 and GLM-4.7-Flash: latent attention, and experts from a router with groups.

Source: DeepSeek-AI 2024, "DeepSeek-V2", section 2; DeepSeek-AI 2024, "DeepSeek-V3 Technical Report", section 2.1; the
weights published with them, and `transformers`.
"""

import math
import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from vizformer.checkpoints.hugging_face.experts_like import as_stored, dense_first, routed_experts, weights
from vizformer.checkpoints.hugging_face.family import Config, Family, Options
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.llama_like import LIKE, NORMS, OUT, attention_bias, decoder
from vizformer.checkpoints.hugging_face.rotary import table_of
from vizformer.checkpoints.tensors.tensor_map import Part, linear
from vizformer.config import ModelConfig
from vizformer.messages import N_

OWN_CODE = re.compile(
    r"(?:[\w.-]+/[\w.-]+--)?(?:configuration|modeling)_deepseek\.DeepseekV[23](?:Config|Model|ForCausalLM)"
)
GROUPS = {"greedy": "1", "group_limited_greedy": "groups"}


def _latent(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    """What all of them have; the rotary numbers of a head come first here, and last in the files."""
    turned, content = fields.size("qk_rope_head_dim"), fields.size("qk_nope_head_dim")
    fields.only("qk_head_dim", None, turned + content)
    if fields.raw.get("head_dim", turned) != turned:  # by which the angles are spread, there
        fields.refuse("head_dim", "it must be qk_rope_head_dim, {n}, or left out", n=turned)
    fields.raw.pop("head_dim", None)
    options, has_head = decoder(fields, names)
    fields.only("num_key_value_heads", None, options["n_heads"])
    fields.only("rope_interleave", None, True)
    fields.only("moe_layer_freq", None, 1)
    named = fields.raw.get("auto_map")
    if isinstance(named, dict) and named and all(OWN_CODE.fullmatch(str(one)) for one in named.values()):
        fields.ignore("auto_map")
        fields.assume(
            "config.json names code of its own (auto_map), which is not run: the numbers are those of the class that "
            "`transformers` has by the same name"
        )
    fields.ignore("aux_loss_alpha", "seq_aux", "ep_size", "num_nextn_predict_layers", "num_mtp_layers")
    name, said = table_of(fields)
    inner = Fields(said, {})
    scale = (turned + content) ** -0.5
    if said.get("rope_type", said.get("type")) == "yarn" and said.get("mscale_all_dim"):
        factor = inner.number("factor")
        scale *= (0.1 * inner.number("mscale_all_dim") * math.log(factor) + 1) ** 2 if factor > 1 else 1.0
        fields.problems += [N_("{field}: {problem}", field=name, problem=problem) for problem in inner.problems]
    rank = fields.value("q_lora_rank")
    value_dim = fields.size("v_head_dim")
    return {
        **options,
        **attention_bias("all")(fields, options),
        "n_kv_heads": None,
        "head_dim": turned + content,
        "rope_dims": turned,
        "attention_scale": None if scale == (turned + content) ** -0.5 else scale,
        "latent_dim": fields.size("kv_lora_rank"),
        "latent_query_dim": None if rank is None else fields.size("q_lora_rank"),
        "latent_value_dim": None if value_dim == turned + content else value_dim,
    }, has_head


def _v2(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    """Probabilities by a softmax, taken as they are; groups are preferred by their best expert."""
    options, has_head = _latent(fields, names)
    layers = dense_first(fields, options["n_decoder_layers"])
    for name, value in (("scoring_func", "softmax"), ("norm_topk_prob", False), ("mlp_bias", False)):
        fields.only(name, None, value)
    grouped = fields.choice("topk_method", GROUPS) == "groups"
    found = routed_experts(fields, options, names, layers, grouped=grouped, renormalised=False)
    found |= {"router_scores": "softmax", "router_correction": False, "router_group_best": 1} if found else {}
    return {**options, **found}, has_head


def _v3(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    options, has_head = _latent(fields, names)
    return _sigmoid(fields, names, options, dense_first(fields, options["n_decoder_layers"])), has_head


def _lite(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    """GLM-4.7-Flash lists the layers that have experts; where it does not, all have but the first."""
    options, has_head = _latent(fields, names)
    kinds, depth = fields.value("mlp_layer_types"), options["n_decoder_layers"]
    layers: Sequence[int] = range(1, depth)
    if kinds is None:
        fields.only("first_k_dense_replace", None, 1)
    elif not isinstance(kinds, list) or len(kinds) != depth or any(kind not in ("dense", "sparse") for kind in kinds):
        fields.refuse("mlp_layer_types", "it must list dense or sparse for each of the {n} layers", n=depth)
    else:
        fields.ignore("first_k_dense_replace")
        layers = [layer for layer, kind in enumerate(kinds) if kind == "sparse"]
    return _sigmoid(fields, names, options, layers), has_head


def _sigmoid(fields: Fields, names: Collection[str], options: Options, layers: Sequence[int]) -> Options:
    fields.only("scoring_func", None, "sigmoid")
    fields.only("topk_method", None, "noaux_tc")
    return {**options, **routed_experts(fields, options, names, layers)}


def _rotary_first(heads: int, d_head: int, turned: int) -> Tensor:
    """The rows of queries: of each head the pairs that turn, neighbours apart, and then the others."""
    rest = d_head - turned
    one = torch.cat([torch.arange(rest, d_head, 2), torch.arange(rest + 1, d_head, 2), torch.arange(rest)])
    return (torch.arange(heads)[:, None] * d_head + one).flatten()


def _latent_first(latent: int, turned: int) -> Tensor:
    """The rows of the latent, and of the shared key, neighbours apart."""
    return torch.cat([torch.arange(latent), latent + _rotary_first(1, turned, turned)])


def _weights(config: ModelConfig) -> list[Part]:
    """What becomes of every tensor."""
    parts = weights(config, {**NORMS, **OUT})
    assert config.latent_dim is not None
    order = partial(_rotary_first, config.n_heads, config.d_head, config.turned_dims)
    latent_order = partial(_latent_first, config.latent_dim, config.turned_dims)
    for layer in range(config.n_decoder_layers):
        theirs, ours = f"layers.{layer}.self_attn", f"decoder.layers.{layer}.self_attention"
        query = "q_proj"
        if config.latent_query_dim is not None:
            query = "q_b_proj"
            parts += linear(f"{theirs}.q_a_proj", f"{ours}.W_DQ", bias=config.qkv_bias)
            parts += linear(f"{theirs}.q_a_layernorm", f"{ours}.query_norm", bias=False)
        parts.append(Part(f"{theirs}.{query}.weight", (f"{ours}.W_Q.weight",), order=order))
        down = linear(f"{theirs}.kv_a_proj_with_mqa", f"{ours}.W_DKV", f"{ours}.W_KR", bias=config.qkv_bias)
        parts += [replace(part, order=latent_order) for part in down]
        parts += linear(f"{theirs}.kv_a_layernorm", f"{ours}.latent_norm", bias=False)
        both = (f"{ours}.W_K.weight", f"{ours}.W_V.weight")
        parts.append(Part(f"{theirs}.kv_b_proj.weight", both, heads=config.n_heads))
    return parts


def _family(name: str, kind: str, config: Config, beyond: str) -> Family:
    """`beyond`: the layers after the last one, by number."""
    guesses = {rf"layers\.({beyond})\..*": N_("layers that guess further tokens ahead, which no forward needs")}
    return replace(
        LIKE,
        name=name,
        types=(kind,),
        config=config,
        weights=_weights,
        by_names=as_stored,
        renamed={r"\.mlp\.shared_experts\.": ".mlp.shared_expert."},
        unused={**LIKE.unused, **(guesses if beyond else {})},
    )


FAMILIES: tuple[Family, ...] = (
    _family("DeepSeek-V2", "deepseek_v2", _v2, ""),
    _family("DeepSeek-V3", "deepseek_v3", _v3, "61"),
    # Zhipu AI 2026, "GLM-4.7-Flash".
    _family("GLM-4 MoE Lite", "glm4_moe_lite", _lite, "47"),
)
