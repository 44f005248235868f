"""Mamba-2: a state space in every layer, no attention and no feed-forward network.

Source: Dao & Gu 2024, "Transformers are SSMs"; the weights published with it, as `transformers` has them.
"""

import math
from collections.abc import Callable, Collection
from functools import partial

import torch
from torch import Tensor

from vizformer.checkpoints.hugging_face.family import Family, Options, says_head, tied_to
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.gpt_like import head
from vizformer.checkpoints.hugging_face.sliding_window import MOST_LAYERS
from vizformer.checkpoints.tensors.tensor_map import Part, linear
from vizformer.config import ModelConfig

_INFINITE = {"__float__": "Infinity"}  # as `transformers` writes it
LONGEST = 2**17  # the layers have no limit of their own
MOST_STEP = 1e30  # of a limit that is one


def _config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
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
        **_limits(fields),
        norm_order="pre",
        norm="rms_norm",
        final_norm=True,
        norm_eps=fields.number("layer_norm_epsilon"),
        bias=False,
        tied_unembedding=tied or not has_head,
        dropout=0.0,
        **fields.marks(vocab_size),
    ), has_head


def _limits(fields: Fields) -> Options:
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


def _weights(config: ModelConfig) -> list[Part]:
    parts = [Part("embeddings.weight", ("embedding.weight",)), Part("norm_f.weight", ("decoder.final_norm.weight",))]
    (groups, heads), (d_key, d_value) = config.state_heads, config.state_dims
    for layer in range(config.n_decoder_layers):
        theirs, block = f"layers.{layer}.mixer", f"decoder.layers.{layer}"
        ours = f"{block}.self_attention"
        order = partial(_channels, heads * d_value, groups * d_key)
        parts += [
            Part(f"layers.{layer}.norm.weight", (f"{block}.self_norm.weight",)),
            *linear(
                f"{theirs}.in_proj",
                *(f"{ours}.W_{letter}" for letter in ("gate", "V", "K", "Q", "a")),
                bias=config.state_bias,
            ),
            *linear(f"{theirs}.out_proj", f"{ours}.W_O", bias=config.state_bias),
            Part(f"{theirs}.conv1d.weight", (f"{ours}.filters",), order=order),
            Part(f"{theirs}.conv1d.bias", (f"{ours}.filter_bias",), order=order),
            Part(f"{theirs}.A_log", (f"{ours}.rate",)),
            Part(f"{theirs}.dt_bias", (f"{ours}.bias",)),
            Part(f"{theirs}.D", (f"{ours}.skip",)),
            Part(f"{theirs}.norm.weight", (f"{ours}.norm.weight",)),
        ]
    return [*parts, *head(config)]


def _channels(values: int, keys: int) -> Tensor:
    """The rows of the file, [x B C], in our order, [C B x]."""
    rows = torch.arange(values + 2 * keys)
    return torch.cat([rows[values + keys :], rows[values : values + keys], rows[:values]])


def _made(config: ModelConfig) -> dict[str, Callable[[], Tensor]]:
    """Networks of zeros, and the norms before them: 3 d_model numbers a layer."""
    found: dict[str, Callable[[], Tensor]] = {}
    for layer in range(config.n_decoder_layers):
        block = f"decoder.layers.{layer}"
        found[f"{block}.feedforward_norm.weight"] = partial(torch.ones, config.d_model)
        found[f"{block}.feedforward.W_in.weight"] = partial(torch.zeros, 1, config.d_model)
        found[f"{block}.feedforward.W_out.weight"] = partial(torch.zeros, config.d_model, 1)
    return found


FAMILIES: tuple[Family, ...] = (
    Family(
        name="Mamba-2",
        types=("mamba2",),
        prefix="backbone.",
        head="lm_head.",
        config=_config,
        weights=_weights,
        ties=tied_to("embeddings.weight"),
        made=_made,
        renamed={r"^backbone\.embedding\.": "backbone.embeddings."},
    ),
)
