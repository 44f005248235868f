"""Gemma 4's language model: wide heads where a layer sees the whole text, values of one size, layers that share keys.

Layers with a sliding window turn all numbers of a head; the others turn the first pairs of a wider one, each by the angle
that it would have if all turned ("proportional"):

    theta^(-2m/d) = theta'^(-2m/t),   theta' = theta^(t/d),   t of d numbers turned

which is a turn of the first t numbers by another base, after these are brought to the front.  In the small models every
layer reads its tokens again (`vizformer.model.layer_input`); the one with a mixture of experts is refused.

Source: Google DeepMind 2026, "Gemma 4", and the weights published with it, as `transformers` has them.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from vizformer.checkpoints.hugging_face.family import Family, Options, relative
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.gemma_like import AGAIN, SAME, TABLES, UNUSED_KEYS, shared_keys
from vizformer.checkpoints.hugging_face.llama_like import (
    FEEDFORWARD,
    FOUR_NORMS,
    LIKE,
    OUT,
    cap,
    decoder,
    tensors,
)
from vizformer.checkpoints.hugging_face.sliding_window import FULL, MOST_LAYERS, SLIDING, windowed_layers
from vizformer.checkpoints.tensors.tensor_map import Part
from vizformer.config import ModelConfig
from vizformer.messages import N_

OWN = "per_layer_config"
_DIGITS = len(str(MOST_LAYERS))  # keys are filled up with zeros: "05"
_TABLE = {"rope_type", "rope_theta"}


def _config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    n_layers = fields.size("num_hidden_layers")
    sliding = _sliding(fields, n_layers)
    full = [layer for layer in range(min(n_layers, MOST_LAYERS)) if layer not in set(sliding)]
    fields.only("use_bidirectional_attention", None, "vision")  # which is of pictures
    again = None if fields.value("hidden_size_per_layer_input") == 0 else fields.size("hidden_size_per_layer_input")
    if again is None:
        fields.ignore("vocab_size_per_layer_input")
    elif fields.size("vocab_size_per_layer_input") != fields.size("vocab_size"):
        fields.refuse("vocab_size_per_layer_input", "it must be vocab_size: every layer reads all tokens again")
    fields.only("partial_rotary_factor", None)
    wide, wide_kv = _wide(fields, full)
    options, has_head = decoder(
        fields,
        names,
        windowed=lambda layer: layer in set(sliding),
        turning=lambda fields: _turning(fields, full, sliding, wide),
        activation="hidden_activation",
    )
    options |= _shared(fields, n_layers, set(sliding), options["d_ff"])
    if fields.flag("enable_moe_block"):
        fields.refuse("enable_moe_block", "a mixture of experts beside the network of each layer is not supported")
    fields.ignore("num_experts", "top_k_experts", "moe_intermediate_size")
    of_keys, makers = fields.flag("attention_k_eq_v"), options.get("kv_layers") or range(n_layers)
    values = {name for name in names if name.endswith(".v_proj.weight")}
    if names and any(
        (f"layers.{layer}.self_attn.v_proj.weight" in values) is of_keys for layer in full if layer in makers
    ):
        fields.refuse("attention_k_eq_v", "the file of weights has matrices of values (v_proj) in other layers")
    if of_keys and full:
        fields.assume(
            "attention_k_eq_v: in layers with full attention one matrix makes keys and values. The model here holds it "
            "twice, and counts it twice among its parameters"
        )
    if not sliding:  # all layers are alike
        options |= {"head_dim": wide, "n_kv_heads": wide_kv}
    else:
        options |= {"wide_layers": tuple(full), "wide_head_dim": wide, "wide_kv_heads": wide_kv}
    bias = fields.flag("attention_bias")
    return {
        **options,
        **SAME,
        "attention_bias": "all" if bias else "none",
        "layer_scale": True,
        "layer_input_dim": again,
        "logit_cap": cap(fields, "final_logit_softcapping"),
    }, has_head


def _sliding(fields: Fields, n_layers: int) -> Sequence[int]:
    """The layers with a window: those of layer_types, or all but every sixth; never the last one."""
    kinds = fields.value("layer_types")
    if isinstance(kinds, list) and kinds and kinds[-1] == SLIDING:
        fields.assume("layer_types: the last layer sees the whole text, whatever the list says, as `transformers` does")
        fields.raw["layer_types"] = [*kinds[:-1], FULL]
    fields.size("sliding_window")  # there is always one
    return windowed_layers(fields, n_layers, lambda layer: (layer + 1) % 6 != 0 and layer != n_layers - 1)


def _wide(fields: Fields, full: Sequence[int]) -> tuple[int, int]:
    """Width of a head, and key/value heads, where a layer sees the whole text.

    per_layer_config has them for each of these layers; in published files it is global_head_dim, and where keys make the
    values num_global_key_value_heads.
    """
    usual, keys = fields.size("head_dim"), fields.size("num_key_value_heads")
    own, of_all = fields.value(OWN), fields.value("num_global_key_value_heads")
    if OWN not in fields.raw:
        return fields.size("global_head_dim"), (
            fields.size("num_global_key_value_heads")
            if fields.flag("attention_k_eq_v") and of_all is not None
            else keys
        )
    fields.ignore("global_head_dim")
    if not own:
        return usual, keys
    each = list(own.values()) if isinstance(own, Mapping) else []
    if (
        not each
        or sorted(str(layer).zfill(_DIGITS) for layer in own) != [str(layer).zfill(_DIGITS) for layer in full]
        or any(one != each[0] for one in each)
        or not isinstance(each[0], Mapping)
        or set(each[0]) - {"head_dim", "num_key_value_heads"}
    ):
        fields.refuse(
            OWN, "supported are head_dim and num_key_value_heads of all layers with full attention, the same in each"
        )
        return usual, keys
    inner = Fields(each[0], {"head_dim": usual, "num_key_value_heads": keys})
    found = inner.size("head_dim"), inner.size("num_key_value_heads")
    fields.problems += [N_("{field}: {problem}", field=OWN, problem=said) for said in inner.problems]
    return found


def _turning(fields: Fields, full: Sequence[int], sliding: Sequence[int], width: int) -> Options:
    """Bases and pairs of both kinds of layers, each from its table of rope_parameters.

    Source: `transformers`, _compute_proportional_rope_parameters.
    """
    fields.only("rope_theta", None)
    said = fields.value("rope_parameters")
    tables = said if isinstance(said, dict) else {}
    kinds = {kind for kind, layers in ((FULL, full), (SLIDING, sliding)) if layers}
    if not all(isinstance(tables.get(kind), dict) for kind in kinds):
        fields.refuse("rope_parameters", "it must have a table for full_attention and one for sliding_attention")
        return {"rope_theta": 10_000.0}
    options: Options = {}
    if sliding:
        near = tables[SLIDING]
        if set(near) - _TABLE or near.get("rope_type") != "default":
            fields.refuse("rope_parameters", "sliding_attention: supported are rotary positions as they are (default)")
        inner = Fields(near, {})
        options = {"rope_local_theta": inner.number("rope_theta"), "rope_local_layers": tuple(sliding)}
        fields.problems += [N_("{field}: {problem}", field="rope_parameters", problem=one) for one in inner.problems]
    far: dict[str, Any] = tables[FULL]
    proportional = far.get("rope_type") == "proportional"
    if far.get("rope_type") not in ("default", "proportional") or set(far) - _TABLE - (
        {"partial_rotary_factor", "factor"} if proportional else set()
    ):
        fields.refuse(
            "rope_parameters", "full_attention: supported are rotary positions of type default or proportional"
        )
        return {**options, "rope_theta": 10_000.0}
    inner = Fields(far, {"partial_rotary_factor": 1.0, "factor": 1.0})
    theta = inner.number("rope_theta")
    if proportional:
        part, factor = inner.number("partial_rotary_factor"), inner.number("factor")
        pairs = int(part * width // 2)
        if part > 1 or not pairs:
            inner.refuse("partial_rotary_factor", "it must be at most 1, and turn one pair of numbers at least")
        elif 2 * pairs < width:
            options["rope_dims"], own = 2 * pairs, theta ** (2 * pairs / width)
            fields.assume(
                "rotary positions of type proportional turn {n:,} of {all:,} pairs of a head by θ = {theta:g}. The model "
                "here has these numbers first in each head, and turns them by θ = {own:.6g}, which are the same angles",
                n=pairs,
                all=width // 2,
                theta=theta,
                own=own,
            )
            theta = own
        if factor != 1:
            options |= {"rope_scaling": "linear", "rope_factor": factor}
    fields.problems += [N_("{field}: {problem}", field="rope_parameters", problem=one) for one in inner.problems]
    return {**options, "rope_theta": theta}


def _shared(fields: Fields, n_layers: int, sliding: Collection[int], d_ff: int) -> Options:
    """Layers that share keys and values, which may have a feed-forward of twice the width."""
    twice, found = fields.flag("use_double_wide_mlp"), shared_keys(fields, n_layers, sliding)
    return {"shared_kv_d_ff": 2 * d_ff, **found} if twice and found else found


def _weights(config: ModelConfig) -> list[Part]:
    again = config.layer_input_dim is not None
    parts = tensors(config, {**FOUR_NORMS, **OUT, **FEEDFORWARD, **(AGAIN if again else {})})
    parts += [Part(theirs, (ours,)) for theirs, ours in TABLES.items()] if again else []
    kinds = ("weight", "bias") if config.qkv_bias else ("weight",)
    for layer in range(config.n_decoder_layers):
        own, theirs, ours = config.of_layer(layer), f"layers.{layer}", f"decoder.layers.{layer}"
        parts.append(Part(f"{theirs}.layer_scalar", (f"{ours}.scale_weight",)))
        modules = {"q_proj": ("W_Q", own.n_heads), "q_norm": ("q_norm", 1)}
        if config.kv_layer(layer) == layer:
            modules |= {"k_proj": ("W_K", own.kv_heads), "k_norm": ("k_norm", 1), "v_proj": ("W_V", 0)}
        for name, (target, heads) in modules.items():
            turned = heads and own.turned_dims < own.d_head
            order = partial(_turned_first, heads, own.d_head, own.turned_dims) if turned else None
            for kind in kinds if name.endswith("proj") else kinds[:1]:
                to = f"{ours}.self_attention.{target}.{kind}"
                parts.append(Part(f"{theirs}.self_attn.{name}.{kind}", (to,), order=order))
    return parts


def _with_values_of_keys(parts: list[Part], names: Collection[str]) -> list[Part]:
    """`parts` where the matrix of the keys makes the values too: it is both, in the layers that have no v_proj."""
    found, lacking = [], {part.source: part for part in parts if ".v_proj." in part.source and part.source not in names}
    for part in parts:
        values = lacking.get(part.source.replace(".k_proj.", ".v_proj."))
        if ".k_proj." in part.source and values is not None:
            found.append(replace(part, targets=(*part.targets, *values.targets), shared=True))
        elif part.source not in lacking:
            found.append(part)
    return found


def _turned_first(heads: int, d_head: int, turned: int) -> Tensor:
    """Of every head the pairs (m, m + d/2) that turn before all others, as (m, m + t/2)."""
    half, pairs = d_head // 2, turned // 2
    ranges = ((0, pairs), (half, half + pairs), (pairs, half), (half + pairs, d_head))
    one = torch.cat([torch.arange(*ends) for ends in ranges])  # [d_head]
    return (torch.arange(heads)[:, None] * d_head + one).flatten()  # [heads * d_head]


FAMILIES: tuple[Family, ...] = (
    relative(
        LIKE,
        "Gemma 4",
        "gemma4_text",
        _config,
        weights=_weights,
        by_names=_with_values_of_keys,
        unused=UNUSED_KEYS,
    ),
)
