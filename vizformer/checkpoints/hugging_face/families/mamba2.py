"""Mamba-2: a state space in every layer, no attention and no feed-forward network.

Source: Dao & Gu 2024, "Transformers are SSMs"; the weights published with it, as `transformers` has them.
"""

from collections.abc import Callable, Collection
from functools import partial

import torch
from torch import Tensor

from vizformer.checkpoints.hugging_face.family import Family, Options, says_head, tied_to
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.gpt_like import head
from vizformer.checkpoints.hugging_face.sliding_window import MOST_LAYERS
from vizformer.checkpoints.hugging_face.state_space import mixer, step_limits
from vizformer.checkpoints.tensors.tensor_map import Part
from vizformer.config import ModelConfig

LONGEST = 2**17  # the layers have no limit of their own


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
        **step_limits(fields),
        norm_order="pre",
        norm="rms_norm",
        final_norm=True,
        norm_eps=fields.number("layer_norm_epsilon"),
        bias=False,
        tied_unembedding=tied or not has_head,
        dropout=0.0,
        **fields.marks(vocab_size),
    ), has_head


def _weights(config: ModelConfig) -> list[Part]:
    parts = [Part("embeddings.weight", ("embedding.weight",)), Part("norm_f.weight", ("decoder.final_norm.weight",))]
    for layer in range(config.n_decoder_layers):
        block = f"decoder.layers.{layer}"
        parts.append(Part(f"layers.{layer}.norm.weight", (f"{block}.self_norm.weight",)))
        parts += mixer(config, f"layers.{layer}.mixer", f"{block}.self_attention")
    return [*parts, *head(config)]


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
        renamed={r"^embedding\.": "embeddings."},
    ),
)
