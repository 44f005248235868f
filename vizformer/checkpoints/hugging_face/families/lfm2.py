"""LFM2: short convolutions between two gates, attention in some of the layers, a gated network in all.

Source: Liquid AI 2025, "LFM2 Technical Report", section 2, and the weights published with it.
"""

from collections.abc import Collection

from vizformer.checkpoints.hugging_face.family import Family, Options, relative
from vizformer.checkpoints.hugging_face.fields import LARGEST, Fields
from vizformer.checkpoints.hugging_face.llama_like import ATTENTION, LIKE, decoder, tensors
from vizformer.checkpoints.hugging_face.sliding_window import FULL, MOST_LAYERS
from vizformer.checkpoints.tensors.tensor_map import Part, linear
from vizformer.config import ModelConfig
from vizformer.options.attention import MOST_TAPS

CONVOLUTION = "conv"
SECOND = {"tie_embedding": "tie_word_embeddings", "block_ff_dim": "intermediate_size"}  # of older files; these count
LAYER = {
    "operator_norm": ["self_norm"],
    "ffn_norm": ["feedforward_norm"],
    **ATTENTION,
    "self_attn.out_proj": ["self_attention.W_O"],
    "self_attn.q_layernorm": ["self_attention.q_norm"],
    "self_attn.k_layernorm": ["self_attention.k_norm"],
    "feed_forward.w1": ["feedforward.W_gate"],
    "feed_forward.w3": ["feedforward.W_in"],
    "feed_forward.w2": ["feedforward.W_out"],
}


def _config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    for second, first in SECOND.items():
        if second in fields.raw:
            fields.follow(second, first)
            fields.raw[first] = fields.raw.pop(second)
    fields.raw["hidden_act"] = "silu"  # whatever stands there
    convolutions = _convolutions(fields, fields.size("num_hidden_layers"))
    for name in ("layer_types", "full_attn_idxs"):
        fields.raw.pop(name, None)  # (they are read here: there are no windows)
    options, has_head = decoder(fields, names, eps="norm_eps")
    taps, bias = fields.size("conv_L_cache"), fields.flag("conv_bias")
    if taps > MOST_TAPS:
        fields.refuse("conv_L_cache", "supported are at most {limit}", limit=MOST_TAPS)
    short: Options = dict(
        state_layers=tuple(convolutions), state_rule="convolution", state_kernel=taps, state_bias=bias
    )
    return {
        **options,
        "d_ff": _width(fields, options["d_ff"]),
        "qk_norm": True,
        "bias": False,
        **(short if convolutions else {}),
    }, has_head


def _convolutions(fields: Fields, n_layers: int) -> list[int]:
    """Those that layer_types lists, or all but full_attn_idxs."""
    kinds, attention = fields.value("layer_types"), fields.value("full_attn_idxs")
    if n_layers > MOST_LAYERS:
        fields.refuse("num_hidden_layers", "supported are at most {limit} layers", limit=MOST_LAYERS)
    elif kinds is None and (attention is None or _are_numbers(attention)):
        return sorted(set(range(n_layers)).difference(range(n_layers) if attention is None else attention))
    elif kinds is None:
        fields.refuse("full_attn_idxs", "it must be a list of numbers of layers")
    elif not isinstance(kinds, list) or any(kind not in (FULL, CONVOLUTION) for kind in kinds):
        fields.refuse("layer_types", "supported are full_attention and conv")
    elif len(kinds) != n_layers:
        fields.refuse("layer_types", "it must have an entry for each of the {n} layers", n=n_layers)
    else:
        return [layer for layer, kind in enumerate(kinds) if kind == CONVOLUTION]
    return []


def _are_numbers(value: object) -> bool:
    return isinstance(value, list) and all(type(layer) is int for layer in value)


def _width(fields: Fields, d_ff: int) -> int:
    """Of the networks: intermediate_size, or what block_auto_adjust_ff_dim makes of it."""
    adjusted, factor = fields.flag("block_auto_adjust_ff_dim"), fields.number("block_ffn_dim_multiplier")
    whole = fields.size("block_multiple_of")
    if not adjusted:
        return d_ff
    found = int(factor * int(2 * d_ff / 3))
    found = whole * ((found + whole - 1) // whole)
    if not 0 < found <= LARGEST:
        fields.refuse("block_ffn_dim_multiplier", "the width of the networks would be {n}", n=found)
        return 1
    return found


def _weights(config: ModelConfig) -> list[Part]:
    convolutions = config.state_layers or ()
    without = tuple(f"layers.{layer}.self_attn." for layer in convolutions)
    parts = [part for part in tensors(config, LAYER) if not part.source.startswith(without)]
    for layer in convolutions:
        theirs, ours, bias = f"layers.{layer}.conv", f"decoder.layers.{layer}.self_attention", config.state_bias
        parts += linear(f"{theirs}.in_proj", *(f"{ours}.W_{letter}" for letter in "KQV"), bias=bias)  # B, C, x
        parts += linear(f"{theirs}.out_proj", f"{ours}.W_O.matrix", bias=bias)
        parts.append(Part(f"{theirs}.conv.weight", (f"{ours}.filters",)))
        parts += [Part(f"{theirs}.conv.bias", (f"{ours}.filter_bias",))] if bias else []
    return parts


FAMILIES: tuple[Family, ...] = (
    relative(LIKE, "LFM2", "lfm2", _config, weights=_weights, renamed={r"^embedding_norm\.": "norm."}),
)
