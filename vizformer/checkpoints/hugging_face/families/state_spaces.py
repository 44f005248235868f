"""Families whose layers keep the state of Mamba-2, in all of them or beside attention.

Source: Dao & Gu 2024, "Transformers are SSMs"; `transformers`, Mamba2Mixer and BambaMixer; and what stands above each.
"""

import math
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from vizformer.checkpoints.hugging_face.family import Family, Options, relative, says_head, tied_to
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.gpt_like import head
from vizformer.checkpoints.hugging_face.llama_like import ATTENTION, LIKE, OUT, biases, decoder, tensors
from vizformer.checkpoints.hugging_face.missing_parameters import Made
from vizformer.checkpoints.hugging_face.rotary import PART
from vizformer.checkpoints.hugging_face.sliding_window import FULL, MOST_LAYERS
from vizformer.checkpoints.tensors.activations import ACTIVATIONS
from vizformer.checkpoints.tensors.tensor_map import Part, attention, layers, linear
from vizformer.config import ModelConfig
from vizformer.messages import N_

_INFINITE = {"__float__": "Infinity"}  # as `transformers` writes it
MOST_STEP = 1e30  # of a limit that is one


def _step_limits(fields: Fields) -> Options:
    """Between what the step is held; [0, Infinity] says that it is not."""
    limits = fields.value("time_step_limit")
    pair = [math.inf if one == _INFINITE else one for one in limits] if isinstance(limits, (list, tuple)) else []
    numbers = len(pair) == 2 and all(type(one) in (int, float) and (one < MOST_STEP or one == math.inf) for one in pair)
    if not numbers or not 0 <= pair[0] < pair[1]:
        fields.refuse(
            "time_step_limit",
            "it must be two numbers from 0 on and below 1e30, the second one above the first or Infinity",
        )
        return {}
    return {
        "state_step_least": float(pair[0]) or None,
        "state_step_most": None if pair[1] == math.inf else float(pair[1]),
    }


def _mixer(config: ModelConfig, theirs: str, ours: str) -> list[Part]:
    """The tensors of one layer's state space."""
    (groups, heads), (d_key, d_value) = config.state_heads, config.state_dims
    order = partial(_channels, heads * d_value, groups * d_key)
    matrices = (f"{ours}.W_{letter}" for letter in ("gate", "V", "K", "Q", "a"))
    names = {"A_log": "rate", "dt_bias": "bias", "D": "skip", "norm.weight": "norm.weight"}
    return [
        *linear(f"{theirs}.in_proj", *matrices, bias=config.state_bias),
        *linear(f"{theirs}.out_proj", f"{ours}.W_O", bias=config.state_bias),
        Part(f"{theirs}.conv1d.weight", (f"{ours}.filters",), order=order),
        Part(f"{theirs}.conv1d.bias", (f"{ours}.filter_bias",), order=order),
        *(Part(f"{theirs}.{name}", (f"{ours}.{own}",)) for name, own in names.items()),
    ]


def _channels(values: int, keys: int) -> Tensor:
    """The rows of the file, [x B C], in our order, [C B x]."""
    rows = torch.arange(values + 2 * keys)
    return torch.cat([rows[values + keys :], rows[values : values + keys], rows[:values]])


def _empty_networks(config: ModelConfig, layers: Iterable[int]) -> Made:
    """Networks of zeros behind mixers that have none, and the norms before them."""
    found: Made = {}
    for layer in layers:
        block = f"decoder.layers.{layer}"
        found[f"{block}.feedforward_norm.weight"] = partial(torch.ones, config.d_model)
        for matrix, rows, columns in (("W_in", config.d_ff, config.d_model), ("W_out", config.d_model, config.d_ff)):
            found[f"{block}.feedforward.{matrix}.weight"] = partial(torch.zeros, rows, columns)
            if config.bias:
                found[f"{block}.feedforward.{matrix}.bias"] = partial(torch.zeros, rows)
    return found


# Mamba-2: a state space in every layer, no attention and no feed-forward network.
# Source: Dao & Gu 2024, "Transformers are SSMs"; the weights published with it, as `transformers` has them.

LONGEST = 2**17  # the layers have no limit of their own


def _mamba_2(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    vocab_size, width, heads, d_head = (
        fields.size(name) for name in ("vocab_size", "hidden_size", "num_heads", "head_dim")
    )
    n_layers, tied = fields.size("num_hidden_layers"), fields.flag("tie_word_embeddings")
    if fields.size("expand") * width != heads * d_head:
        fields.refuse("expand", "expand * hidden_size must be num_heads * head_dim")
    if n_layers > MOST_LAYERS:
        fields.refuse("num_hidden_layers", "supported are at most {limit} layers", limit=MOST_LAYERS)
        n_layers = 1
    fields.only("hidden_act", "silu")
    fields.ignore(
        *("chunk_size", "residual_in_fp32", "rescale_prenorm_residual", "time_step_rank"),
        *("time_step_min", "time_step_max", "time_step_floor"),
    )
    fields.assume(
        "the layers have no feed-forward network: the one shown is made of zeros and adds nothing, and its {n:,} "
        "parameters, which are counted with the others, are not in the file",
        n=3 * width * n_layers,
    )
    fields.assume("texts up to {limit:,} tokens are accepted; config.json names no limit", limit=LONGEST)
    fields.only("use_conv_bias", True)
    has_head = tied or "lm_head.weight" in names or says_head(fields.architecture)
    return dict(
        vocab_size=vocab_size,
        d_model=width,
        n_heads=heads,
        head_dim=None if d_head * heads == width else d_head,
        d_ff=1,
        n_decoder_layers=n_layers,
        max_positions=LONGEST,
        positions="none",
        state_layers=tuple(range(n_layers)),
        state_rule="space",
        state_key_heads=fields.size("n_groups"),
        state_key_dim=fields.size("state_size"),
        state_kernel=fields.size("conv_kernel"),
        state_bias=fields.flag("use_bias"),
        **_step_limits(fields),
        norm_order="pre",
        norm="rms_norm",
        final_norm=True,
        norm_eps=fields.number("layer_norm_epsilon"),
        bias=False,
        tied_unembedding=tied or not has_head,
        dropout=0.0,
        **fields.marks(vocab_size),
    ), has_head


def _mamba_2_weights(config: ModelConfig) -> list[Part]:
    parts = [Part("embeddings.weight", ("embedding.weight",)), Part("norm_f.weight", ("decoder.final_norm.weight",))]
    for layer in range(config.n_decoder_layers):
        block = f"decoder.layers.{layer}"
        parts.append(Part(f"layers.{layer}.norm.weight", (f"{block}.self_norm.weight",)))
        parts += _mixer(config, f"layers.{layer}.mixer", f"{block}.self_attention")
    return [*parts, *head(config)]


# Bamba: state spaces of Mamba-2, attention in some of the layers, a gated network in all.
# Source: Ganti et al. 2024, "Bamba: Inference-Efficient Hybrid Mamba2 Model", and the weights published with it.

BAMBA = {
    "input_layernorm": ["self_norm"],
    "pre_ff_layernorm": ["feedforward_norm"],
    **ATTENTION,
    **OUT,
    "feed_forward.gate_proj": ["feedforward.W_gate"],
    "feed_forward.up_proj": ["feedforward.W_in"],
    "feed_forward.down_proj": ["feedforward.W_out"],
}


def _bamba(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    fields.raw[PART] = 0.5  # whatever stands there; what the table says comes first
    options, has_head = decoder(fields, names, part=True)
    spaces = _state_layers(fields, options["n_decoder_layers"])
    fields.only("hidden_act", "silu")
    fields.only("mamba_conv_bias", True)
    fields.ignore("mamba_chunk_size", "num_logits_to_keep", "z_loss_coefficient", "layers_block_type")
    heads, inner = fields.size("mamba_n_heads"), fields.size("mamba_expand") * options["d_model"]
    auto = fields.value("mamba_d_head") == "auto"
    d_head = inner // heads if auto else fields.size("mamba_d_head")
    if d_head * heads != inner:
        fields.refuse("mamba_expand", "mamba_expand * hidden_size must be mamba_n_heads * mamba_d_head")
    sizes: Options = dict(
        state_layers=tuple(spaces),
        state_rule="space",
        state_key_heads=fields.size("mamba_n_groups"),
        state_value_heads=heads,
        state_key_dim=fields.size("mamba_d_state"),
        state_value_dim=d_head,
        state_kernel=fields.size("mamba_d_conv"),
        state_bias=fields.flag("mamba_proj_bias"),
        **_step_limits(fields),
    )
    return {**options, **biases(fields, options), **(sizes if spaces else {})}, has_head


def _state_layers(fields: Fields, n_layers: int) -> list[int]:
    """All layers but those of attn_layer_indices."""
    attention = fields.value("attn_layer_indices")
    attention = [] if attention is None else attention
    if n_layers > MOST_LAYERS:
        fields.refuse("num_hidden_layers", "supported are at most {limit} layers", limit=MOST_LAYERS)
        return []
    if not isinstance(attention, list) or any(type(layer) is not int for layer in attention):
        fields.refuse("attn_layer_indices", "it must be a list of numbers of layers")
        return []
    return sorted(set(range(n_layers)).difference(attention))


def _bamba_weights(config: ModelConfig) -> list[Part]:
    spaces = config.state_layers or ()
    without = tuple(f"layers.{layer}.self_attn." for layer in spaces)
    parts = [part for part in tensors(config, BAMBA) if not part.source.startswith(without)]
    for layer in spaces:
        parts += _mixer(config, f"layers.{layer}.mamba", f"decoder.layers.{layer}.self_attention")
    return parts


# Nemotron-H: state spaces of Mamba-2, attention without positions, networks with a squared ReLU, in any order.
# Each of its layers is one of the three behind a norm.  Here a layer is a mixer with the network that follows it; where none
# follows, the network is made of zeros and adds nothing.
# Source: NVIDIA 2025, "Nemotron-H: A Family of Accurate and Efficient Hybrid Mamba-Transformer Models", section 2.1; the
# weights published with it, as `transformers` has them.

SPACE, NETWORK = "linear_attention", "mlp"
PATTERN = {"M": SPACE, "*": FULL, "-": NETWORK}  # of older files, a letter for each layer
BEFORE = {"mamba": SPACE, "attention": FULL}
# First names of fields, which count where both are there.
FIRST = {
    "mamba_n_groups": "n_groups",
    "mamba_d_conv": "conv_kernel",
    "mamba_dt_min": "time_step_min",
    "mamba_conv_bias": "use_conv_bias",
}
ATTENTIONS = {**attention("mixer.{}_proj", "q k v"), "mixer.o_proj": ["self_attention.W_O"]}
NETWORKS = {"mixer.up_proj": ["feedforward.W_in"], "mixer.down_proj": ["feedforward.W_out"]}
UNREAD = """
attention_bias chunk_size expand mamba_chunk_size mamba_dt_init_floor mamba_dt_limit mamba_dt_max mamba_expand
mamba_proj_bias mamba_ssm_cache_dtype moe_intermediate_size moe_latent_size moe_shared_expert_intermediate_size
moe_shared_expert_overlap mtp_hybrid_override_pattern mtp_layers_block_type n_group n_routed_experts n_shared_experts
norm_topk_prob num_experts_per_tok num_hidden_layers num_logits_to_keep num_nextn_predict_layers rescale_prenorm_residual
residual_in_fp32 routed_scaling_factor tie_word_embeddings time_step_floor time_step_limit time_step_max topk_group
use_mamba_kernels
"""
_NETWORK = re.compile(r"layers\.(\d{1,9})\.mixer\.up_proj\.weight")
_LAYER = re.compile(r"layers\.(\d{1,9})\.")


def _nemotron_h(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    for first, now in FIRST.items():
        if first in fields.raw:
            fields.raw[now] = fields.raw.pop(first)
    kinds = _kinds(fields, names)
    mixers = [kind for kind in kinds if kind != NETWORK]
    spaces = tuple(layer for layer, kind in enumerate(mixers) if kind == SPACE)
    fields.ignore(*UNREAD.split())
    fields.only("sliding_window", None)
    fields.only("mamba_hidden_act", "silu")
    fields.only("use_conv_bias", True)
    vocab_size, width, heads, d_head = (
        fields.size(name) for name in ("vocab_size", "hidden_size", "num_attention_heads", "head_dim")
    )
    d_ff = fields.size("intermediate_size")
    d_ff = d_ff if NETWORK in kinds else 1
    if (alone := 2 * len(mixers) - len(kinds)) > 0:
        fields.assume(
            "layers without a feed-forward network: {n}. The one shown there is made of zeros and adds nothing, and its "
            "{each:,} parameters, which are counted with the others, are not in the file",
            n=alone,
            each=(2 * d_ff + 1) * width,
        )
    has_head = "lm_head.weight" in names or says_head(fields.architecture)
    state: Options = dict(
        state_layers=spaces,
        state_rule="space",
        state_key_heads=fields.size("n_groups"),
        state_value_heads=fields.size("mamba_num_heads"),
        state_key_dim=fields.size("ssm_state_size"),
        state_value_dim=fields.size("mamba_head_dim"),
        state_kernel=fields.size("conv_kernel"),
        state_bias=fields.flag("use_bias"),
        state_step_least=None if fields.value("time_step_min") == 0 else fields.number("time_step_min"),
    )
    return dict(
        vocab_size=vocab_size,
        d_model=width,
        n_heads=heads,
        head_dim=None if d_head * heads == width else d_head,
        n_kv_heads=None if (n := fields.size("num_key_value_heads", otherwise=heads)) == heads else n,
        d_ff=d_ff,
        n_decoder_layers=len(mixers),
        max_positions=fields.size("max_position_embeddings"),
        positions="none",
        **(state if spaces else {}),
        norm_order="pre",
        norm="rms_norm",
        final_norm=True,
        norm_eps=fields.number("layer_norm_epsilon"),
        activation=fields.choice("mlp_hidden_act", ACTIVATIONS),
        bias=fields.flag("mlp_bias"),
        attention_bias="none",
        tied_unembedding=not has_head,
        dropout=0.0,
        **fields.marks(vocab_size),
    ), has_head


def _kinds(fields: Fields, names: Collection[str]) -> Sequence[str]:
    """What each layer is: layers_block_type, or of older files hybrid_override_pattern."""
    letters, said = fields.value("hybrid_override_pattern"), fields.value("layers_block_type")
    listed_now = fields.raw.get("layers_block_type") is not None or letters is None
    name = "layers_block_type" if listed_now else "hybrid_override_pattern"
    known = PATTERN if name == "hybrid_override_pattern" else BEFORE
    listed = list(letters) if known is PATTERN and isinstance(letters, str) else said
    kinds = [known.get(kind, kind) for kind in listed if isinstance(kind, str)] if isinstance(listed, list) else []
    if not 0 < len(kinds) <= MOST_LAYERS or len(kinds) != len(listed) or set(kinds) - {SPACE, FULL, NETWORK}:
        fields.refuse(
            name, "supported are layers of linear_attention, full_attention and mlp, in older files M, * and -"
        )
    elif any(pair == (NETWORK, NETWORK) for pair in zip([NETWORK, *kinds], kinds, strict=False)):
        fields.refuse(name, "supported are networks (mlp) that follow a mixer each")
    elif {layer for layer, kind in enumerate(kinds) if kind == NETWORK} != _networks(names):
        fields.refuse(name, "the file of weights has networks (mlp) in other layers")
    else:
        return kinds
    return [FULL]


def _nemotron_h_weights(config: ModelConfig) -> list[Part]:
    """The layers by our numbers: `_as_numbered` gives them those of the file, where networks are counted too."""
    parts = [Part("embeddings.weight", ("embedding.weight",)), Part("norm_f.weight", ("decoder.final_norm.weight",))]
    for layer in range(config.n_decoder_layers):
        block, space = f"decoder.layers.{layer}", config.has_state(layer)
        parts += linear(f"mixers.{layer}.norm", f"{block}.self_norm", bias=False)
        if space:
            parts += _mixer(config, f"mixers.{layer}.mixer", f"{block}.self_attention")
        for name, ours in ({} if space else ATTENTIONS).items():
            parts += linear(f"mixers.{layer}.{name}", *(f"{block}.{one}" for one in ours), bias=False)
    parts += layers(NETWORKS, "networks.{}", "decoder.layers.{}", config.n_decoder_layers, bias=config.bias)
    norm = {"norm": ["feedforward_norm"]}
    parts += layers(norm, "networks.{}", "decoder.layers.{}", config.n_decoder_layers, bias=False)
    return [*parts, *head(config)]


def _networks(names: Collection[str]) -> set[int]:
    """The layers of the file that are networks."""
    return {int(match[1]) for name in names if (match := _NETWORK.fullmatch(name))}


def _numbers(names: Collection[str]) -> tuple[list[int], dict[int, int]]:
    """Of the mixers in the file, in order, and of the network behind each, where there is one."""
    found = sorted({int(match[1]) for name in names if (match := _LAYER.match(name))})
    networks = _networks(names)
    mixers = [layer for layer in found if layer not in networks]
    return mixers, {ours: layer + 1 for ours, layer in enumerate(mixers) if layer + 1 in networks}


def _as_numbered(parts: list[Part], names: Collection[str]) -> list[Part]:
    mixers, networks = _numbers(names)
    numbers = {"mixers": dict(enumerate(mixers)), "networks": networks}
    found = []
    for part in parts:
        kind, __, rest = part.source.partition(".")
        if kind in numbers:
            ours, __, name = rest.partition(".")
            part = replace(part, source=f"layers.{numbers[kind].get(int(ours), f'{kind}-{ours}')}.{name}")
        found.append(part)
    return found


def _nemotron_h_made(config: ModelConfig, names: Collection[str]) -> Made:
    networks = _numbers(names)[1]
    return _empty_networks(config, (layer for layer in range(config.n_decoder_layers) if layer not in networks))


FAMILIES: tuple[Family, ...] = (
    Family(
        name="Mamba-2",
        types=("mamba2",),
        prefix="backbone.",
        head="lm_head.",
        config=_mamba_2,
        weights=_mamba_2_weights,
        ties=tied_to("embeddings.weight"),
        made=lambda config: _empty_networks(config, range(config.n_decoder_layers)),
        renamed={r"^embedding\.": "embeddings."},
    ),
    relative(LIKE, "Bamba", "bamba", _bamba, weights=_bamba_weights, renamed={r"^final_layernorm\.": "norm."}),
    Family(
        name="Nemotron-H",
        types=("nemotron_h",),
        prefix="model.",
        head="lm_head.",
        config=_nemotron_h,
        weights=_nemotron_h_weights,
        ties=lambda config: {},
        by_names=_as_numbered,
        made_by_names=_nemotron_h_made,
        renamed={r"^backbone\.": ""},
        unused={r"mtp\..*": N_("layers that guess further tokens ahead, which no forward needs")},
    ),
)
