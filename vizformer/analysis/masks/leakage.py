"""Leakage, measured: which outputs move when one token is changed."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy import ndarray

from vizformer.analysis.heads.maps import n_layers
from vizformer.analysis.masks.runs import mask_edit, own_blocked, rerun
from vizformer.checkpoints import AnyCheckpoint
from vizformer.errors import TraceError
from vizformer.model.input_check import row_at
from vizformer.model.masks import causal_mask
from vizformer.model.sparse_masks import window_mask
from vizformer.model.trace import Trace
from vizformer.text import Token

Stack = Literal["encoder", "decoder"]
RunMask = Literal["own", "causal", "window", "open"]
"""The mask of all layers in a run: the model's own, a causal one, its own with a window, or none."""


@dataclass(frozen=True)
class Leak:
    """The differences between two forwards over equally many tokens."""

    # largest |difference| of the residual stream, before the first layer (row 0) and after each layer [n_layers + 1, n]
    stream: Float[ndarray, "points n"]
    outputs: Float[ndarray, " n"]  # the same of the stack's output (after the final norm, where there is one) [n]

    @property
    def moved(self) -> tuple[int, ...]:
        """The positions whose output differs at all: the comparison is exact, not within a tolerance."""
        return tuple(np.flatnonzero(self.outputs != 0).tolist())


def leak(before: Trace, after: Trace, stack: Stack) -> Leak:
    """Compares the residual streams of a stack.

    Raises:
        TraceError: sequences of different lengths.
    """
    points = [f"{stack}.0.pre", *(f"{stack}.{layer}.post" for layer in range(n_layers(before, stack)))]
    if before.residual(points[0]).shape != after.residual(points[0]).shape:
        raise TraceError("Only sequences of the same length can be compared position by position.")
    stream = np.stack([_apart(before.residual(name), after.residual(name)) for name in points])
    final = f"{stack}.final"
    return Leak(stream, _apart(before.residual(final), after.residual(final)))


def _apart(before: torch.Tensor, after: torch.Tensor) -> Float[ndarray, " n"]:
    return (before - after).abs().amax(dim=-1).double().cpu().numpy()


def run_blocked(trace: Trace, stack: Stack, run: RunMask, reach: int = 1) -> Bool[ndarray, "n_layers n n"]:
    """What each layer's self-attention blocks where the model runs with this mask; `reach` is that of the window."""
    own = own_blocked(trace, stack)
    n = own.shape[-1]
    if run == "own":
        return own
    if run == "open":
        return np.zeros_like(own)
    mask = causal_mask(n) if run == "causal" else window_mask(n, reach)
    found: Bool[ndarray, "n n"] = mask.reason[0, 0].numpy() > 0
    return found | own if run == "window" else np.broadcast_to(found, own.shape)


def replacements(
    checkpoint: AnyCheckpoint, trace: Trace, stack: Stack, position: int, count: int = 5
) -> tuple[Token, ...]:
    """Tokens to put in the place of one: those with the most similar embeddings, then the others of the sentence.

    Similarity is the cosine of two rows of the token table.
    """
    row = trace.tokens[stack]
    position = row_at(position, len(row))
    own, table = row[position].id, checkpoint.model.token_table(stack).weight
    with torch.inference_mode():
        similar = (table @ table[own]) / (table.norm(dim=-1) * table[own].norm()).clamp(min=1e-9)
    near = checkpoint.tokenizer_of(stack).tokens(similar.topk(min(4 * count, len(table))).indices.tolist())
    found: dict[int, Token] = {}
    for token in (*[t for t in near if t.text.strip()][: count + 1], *row):
        if token.id != own and not token.special:
            found.setdefault(token.id, token)
    return tuple(found.values())


def leak_of(
    checkpoint: AnyCheckpoint,
    trace: Trace,
    stack: Stack,
    position: int,
    token_id: int,
    blocked: Bool[ndarray, "*n_layers n n"],
) -> Leak:
    """How far the outputs of a stack move when one of its tokens is replaced; both runs have the mask `blocked`."""
    edit = mask_edit(trace, stack, blocked)
    row = list(trace.tokens[stack])
    row[row_at(position, len(row))] = checkpoint.tokenizer_of(stack).tokens([token_id])[0]
    before = rerun(checkpoint, dict(trace.tokens), edit)
    return leak(before, rerun(checkpoint, {**trace.tokens, stack: tuple(row)}, edit), stack)
