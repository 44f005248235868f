"""GPT's relatives that need more than a row in a table.

Source: what stands above each, and the weights published with it.
"""

from collections.abc import Collection
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from vizformer.checkpoints.hugging_face.family import Family, Options, relative, tied_to
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.gpt_like import (
    LIKE,
    ONE_NORM,
    UNUSED,
    byte_level_texts,
    composed_texts,
    decoder,
    head,
    side_by_side,
    tensors,
)
from vizformer.checkpoints.hugging_face.missing_parameters import NO_NORM_BIASES, Made, no_norm_biases, zeros
from vizformer.checkpoints.hugging_face.rotary import all_are_turned, rope
from vizformer.checkpoints.hugging_face.sliding_window import MOST_LAYERS
from vizformer.checkpoints.tensors.activations import ACTIVATIONS
from vizformer.checkpoints.tensors.tensor_map import Part, layers, linear, neighbours_apart
from vizformer.config import ModelConfig
from vizformer.messages import N_

# GPT-Neo: GPT-2 with a window in every second layer, scores that are not divided, and no biases of q, k and v.
# Source: Black et al. 2021, "GPT-Neo: Large Scale Autoregressive Language Modeling with Mesh-Tensorflow", and the weights
# published with it.

GPT_NEO_ATTENTION = {f"attn.attention.{letter}_proj": [f"self_attention.W_{letter.upper()}"] for letter in "qkv"}
GPT_NEO = {
    "ln_1": ["self_norm"],
    **GPT_NEO_ATTENTION,
    "attn.attention.out_proj": ["self_attention.W_O"],
    "ln_2": ["feedforward_norm"],
    "mlp.c_fc": ["feedforward.W_in"],
    "mlp.c_proj": ["feedforward.W_out"],
}


def _gpt_neo(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    options, has_head = decoder(fields, names, "hidden_size", "num_heads", "num_layers")
    fields.assume("queries, keys and values of this family have no biases: those of the model here are 0")
    return {
        **options,
        **_window(fields, options["n_decoder_layers"], options["max_positions"]),
        "d_ff": fields.size("intermediate_size", 4 * options["d_model"]),
        "positions": "learned",
        "attention_scale": 1.0,
        "norm_eps": fields.number("layer_norm_epsilon"),
        "activation": fields.choice("activation_function", ACTIVATIONS),
    }, has_head


def _window(fields: Fields, n_layers: int, longest: int) -> Options:
    """Which layers look at the last window_size tokens only.

    attention_layers lists their kinds; where it is not there, attention_types lists kinds and how often they repeat.
    """
    size, repeated, kinds = (fields.size("window_size"), *map(fields.value, ("attention_types", "attention_layers")))
    name = "attention_types" if kinds is None else "attention_layers"
    if kinds is None:
        kinds = _repeated(repeated)
    if not isinstance(kinds, list) or len(kinds) != n_layers or any(kind not in ("global", "local") for kind in kinds):
        fields.refuse(name, "it must list global or local for each of the {n} layers", n=n_layers)
        return {}
    local = tuple(layer for layer, kind in enumerate(kinds) if kind == "local")
    if not local or size >= longest:
        return {}
    return {"sliding_window": size, "sliding_layers": None if len(local) == n_layers else local}


def _repeated(said: object) -> list[object] | None:
    """[[["global", "local"], 2]] -> ["global", "local", "global", "local"]; None where it is no such list."""
    kinds: list[object] = []
    for entry in said if isinstance(said, list) else [None]:
        match entry:
            case [list(names), int(times)] if len(kinds) + times * len(names) <= MOST_LAYERS:
                kinds += names * times
            case _:
                return None
    return kinds


def _gpt_neo_made(config: ModelConfig) -> Made:
    names = [
        f"decoder.layers.{layer}.{ours}.bias"
        for layer in range(config.n_decoder_layers)
        for (ours,) in GPT_NEO_ATTENTION.values()
    ]
    return zeros(names, config.d_model)


# CodeGen: GPT-J with queries, keys and values in one tensor, as four machines once shared them.
# Source: Nijkamp et al. 2022, "CodeGen: An Open Large Language Model for Code", and the weights published with it.

MACHINES = 4
CODEGEN_FUSED = "attn.qkv_proj"
CODEGEN = {
    "ln_1": ["self_norm", "feedforward_norm"],
    CODEGEN_FUSED: [f"self_attention.W_{letter}" for letter in "QKV"],
    "attn.out_proj": ["self_attention.W_O"],
    "mlp.fc_in": ["feedforward.W_in"],
    "mlp.fc_out": ["feedforward.W_out"],
}


def _codegen(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    fields.value("n_ctx")  # an old second name of n_positions, which no forward reads
    options, has_head = side_by_side(fields, names)
    if options["n_heads"] % MACHINES:
        fields.refuse("n_head", "it must be a multiple of {n}", n=MACHINES)
    return options, has_head


def _codegen_rows(heads: int, d_head: int, turned: int) -> Tensor:
    """The rows of the file as W_Q, W_K and W_V have them.

    Each machine's share is [queries, values, keys] of a quarter of the heads.
    """
    share = heads * d_head // MACHINES
    where = torch.arange(3 * heads * d_head).reshape(MACHINES, 3, share)  # [machine, q v k, row]
    queries, values, keys = (where[:, kind].flatten() for kind in range(3))  # [heads * d_head] each
    order = neighbours_apart(heads, d_head, turned)
    return torch.cat([queries[order], keys[order], values])


def _codegen_weights(config: ModelConfig) -> list[Part]:
    no_bias = [CODEGEN_FUSED, "attn.out_proj"]
    order = partial(_codegen_rows, config.n_heads, config.d_head, config.turned_dims)
    return [
        replace(part, order=order) if CODEGEN_FUSED in part.source else part
        for part in tensors(config, CODEGEN, no_bias=no_bias)
    ]


# MPT: the distance taken off every score (ALiBi), no biases at all, q, k and v in one.
# Source: MosaicML 2023, "Introducing MPT-7B", and the weights published with it.

MPT_ATTENTION = {"alibi": True, "alibi_bias_max": 8, "clip_qkv": None, "prefix_lm": False, "qk_ln": False}
MPT = {
    "norm_1": ["self_norm"],
    "attn.Wqkv": [f"self_attention.W_{letter}" for letter in "QKV"],
    "attn.out_proj": ["self_attention.W_O"],
    "norm_2": ["feedforward_norm"],
    "ffn.up_proj": ["feedforward.W_in"],
    "ffn.down_proj": ["feedforward.W_out"],
}


def _mpt(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    options, has_head = decoder(fields, names, "d_model", "n_heads", "n_layers", "max_seq_len")
    fields.only("no_bias", True)
    fields.only("expansion_ratio", 4)
    fields.only("logit_scale", None)
    fields.only("norm_type", None, "low_precision_layernorm", "layernorm")
    # Of its training.
    fields.ignore("learned_pos_emb", "init_device", "embedding_fraction", "init_config", "verbose")
    fields.assume(NO_NORM_BIASES)
    return {
        **options,
        "d_ff": 4 * options["d_model"],
        "positions": "alibi",
        "attention_scale": _attention(fields),
        "norm_eps": fields.number("layer_norm_epsilon"),
        "activation": "gelu",
        "bias": False,
    }, has_head


def _attention(fields: Fields) -> float | None:
    """The table of attention's own fields; what the scores are multiplied by."""
    said = fields.value("attn_config")
    if said is not None and not isinstance(said, dict):
        fields.refuse("attn_config", "it must be a table of fields")
        return None
    inner = Fields(said or {}, MPT_ATTENTION)
    for name, only in MPT_ATTENTION.items():
        inner.only(name, only)
    inner.only("attn_type", None, "multihead_attention")
    scale = None if inner.value("softmax_scale") is None else inner.number("softmax_scale")
    fields.problems += [N_("{field}: {problem}", field="attn_config", problem=problem) for problem in inner.problems]
    return scale


def _mpt_weights(config: ModelConfig) -> list[Part]:
    no_bias = [name for name in MPT if not name.startswith("norm")]
    return tensors(config, MPT, layer="blocks.{}", final="norm_f", no_bias=no_bias)


# Falcon: attention and feed-forward side by side, one key and value for all heads (7B) or for a group (40B).
# Source: Almazrouei et al. 2023, "The Falcon Series of Open Language Models", section 4, and the weights published with
# it.

FALCON_FUSED = "self_attention.query_key_value"
ONE, FIRST, SECOND = "input_layernorm", "ln_attn", "ln_mlp"
FALCON = {
    FALCON_FUSED: [f"self_attention.W_{letter}" for letter in "QKV"],
    "self_attention.dense": ["self_attention.W_O"],
    "mlp.dense_h_to_4h": ["feedforward.W_in"],
    "mlp.dense_4h_to_h": ["feedforward.W_out"],
}


def _falcon(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    options, has_head = decoder(fields, names)
    width, heads = options["d_model"], options["n_heads"]
    all_are_turned(fields)
    fields.only("n_embed", None, width)
    if fields.flag("alibi"):
        fields.refuse("alibi", "what it takes off the scores is rounded to bfloat16, which is not followed here")
    new, parallel = fields.flag("new_decoder_architecture"), fields.flag("parallel_attn")
    kv_heads = fields.size("num_kv_heads", heads)
    if new:
        fields.only("parallel_attn", True)
        fields.only("num_ln_in_parallel_attn", None, 1, 2)
    else:
        fields.only("num_ln_in_parallel_attn", None, 1)
        kv_heads = 1 if fields.flag("multi_query") else heads  # whatever num_kv_heads says
    if parallel and not (new and fields.value("num_ln_in_parallel_attn") in (None, 2)):
        fields.assume(ONE_NORM)
    return {
        **options,
        "n_kv_heads": None if kv_heads == heads else kv_heads,
        "d_ff": fields.size("ffn_hidden_size", 4 * width),
        "positions": "rope",
        **rope(fields),
        "residual": "parallel" if parallel else "sequential",
        "norm_eps": fields.number("layer_norm_epsilon"),
        "activation": fields.choice("activation", ACTIVATIONS),
        "bias": fields.flag("bias"),
    }, has_head


def _falcon_weights(config: ModelConfig) -> list[Part]:
    """What becomes of every tensor; the queries that share a key and a value lie in front of these."""
    parallel = config.residual == "parallel"
    norms = {
        FIRST if parallel else ONE: ["self_norm"],
        SECOND if parallel else "post_attention_layernorm": ["feedforward_norm"],
    }
    heads = {FALCON_FUSED: config.kv_heads}
    linears = layers(FALCON, "h.{}", "decoder.layers.{}", config.n_decoder_layers, bias=config.bias, heads=heads)
    return [
        Part("word_embeddings.weight", ("embedding.weight",)),
        *layers(norms, "h.{}", "decoder.layers.{}", config.n_decoder_layers),
        *linears,
        *linear("ln_f", "decoder.final_norm"),
        *head(config),
    ]


def _falcon_by_names(parts: list[Part], names: Collection[str]) -> list[Part]:
    """One norm where the file has no two."""
    if any(f".{FIRST}." in name for name in names):
        return parts
    targets = {part.source: part.targets for part in parts}
    return [
        replace(
            part,
            source=part.source.replace(FIRST, ONE),
            targets=(*part.targets, *targets[part.source.replace(FIRST, SECOND)]),
            shared=True,
        )
        if FIRST in part.source
        else part
        for part in parts
        if SECOND not in part.source
    ]


FAMILIES: tuple[Family, ...] = (
    relative(
        LIKE,
        "GPT-Neo",
        "gpt_neo",
        _gpt_neo,
        weights=partial(tensors, template=GPT_NEO, positions="wpe"),
        tokenizer=byte_level_texts,
        made=_gpt_neo_made,
    ),
    relative(
        LIKE,
        "CodeGen",
        "codegen",
        _codegen,
        weights=_codegen_weights,
        tokenizer=byte_level_texts,
        unused={**UNUSED, r"h\.\d+\.attn\.causal_mask": N_("the causal mask: it follows from the positions")},
    ),
    relative(LIKE, "MPT", "mpt", _mpt, weights=_mpt_weights, tokenizer=composed_texts, made=no_norm_biases),
    relative(
        LIKE,
        "Falcon",
        "falcon",
        _falcon,
        weights=_falcon_weights,
        ties=tied_to("word_embeddings.weight"),
        by_names=_falcon_by_names,
    ),
)
