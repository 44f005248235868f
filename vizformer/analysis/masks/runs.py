"""Runs with other masks than the model's own: two sentences in a padded batch, and cells blocked or opened by hand."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool
from numpy import ndarray

from vizformer.analysis.heads.maps import Kind, n_layers, site_name
from vizformer.checkpoints import AnyCheckpoint
from vizformer.model import Cell, Edit, Trace
from vizformer.text import Token

# --- a batch of two sentences -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PaddedRun:
    """Two sentences in one batch, the shorter one filled up on the right."""

    trace: Trace
    tokens: dict[str, tuple[Token, ...]]  # stack -> the first sentence's tokens with the padding after them
    other: dict[str, tuple[Token, ...]]
    # stack -> True where a token of (first, second) only fills the batch [2, n]
    padding: dict[str, Bool[ndarray, "2 n"]]
    # how far the first sentence's outputs are from those it has alone, at its own tokens: largest |difference| of the
    # last residual stream of every stack
    difference: float

    def unused(self, stack: str) -> tuple[int, ...]:
        """The positions of the first sentence that only fill the batch: nobody reads what comes out there."""
        return tuple(np.flatnonzero(self.padding[stack][0]).tolist())


def padded_run(checkpoint: AnyCheckpoint, first: Trace, second: Trace) -> PaddedRun:
    """One forward over both sentences, as their own traces have them (also the targets), with padding masks."""
    rows: dict[str, list[tuple[Token, ...]]] = {}
    for stack in first.tokens:
        both = (first.tokens[stack], second.tokens[stack])
        n, pad = max(map(len, both)), _filling(checkpoint, stack)
        rows[stack] = [(*tokens, *[pad] * (n - len(tokens))) for tokens in both]
    padding = {
        stack: np.array(
            [[i >= len(side.tokens[stack]) for i in range(len(rows[stack][0]))] for side in (first, second)]
        )
        for stack in rows
    }
    ids = {stack: torch.cat([checkpoint.tensor(row) for row in both]) for stack, both in rows.items()}  # [2, n]
    masks = {stack: torch.from_numpy(found).to(checkpoint.device) for stack, found in padding.items()}
    segments = [checkpoint.segments(row) for row in next(iter(rows.values()))]
    trace = Trace(tokens={stack: both[0] for stack, both in rows.items()})
    with torch.inference_mode():
        if len(rows) == 2:
            checkpoint.model(
                ids["encoder"],
                ids["decoder"],
                padding=masks["encoder"],
                target_padding=masks["decoder"],
                trace=trace,
                edit=first.edit,
            )
        else:
            stack = next(iter(rows))
            joined = None if segments[0] is None else torch.cat([s for s in segments if s is not None])
            checkpoint.model(ids[stack], padding=masks[stack], segments=joined, trace=trace, edit=first.edit)
    differences = [
        (trace.residual(f"{stack}.final")[: len(tokens)] - first.residual(f"{stack}.final")).abs().max()
        for stack, tokens in first.tokens.items()
    ]
    return PaddedRun(
        trace,
        {stack: both[0] for stack, both in rows.items()},
        {stack: both[1] for stack, both in rows.items()},
        padding,
        float(max(differences)),
    )


def _filling(checkpoint: AnyCheckpoint, stack: str) -> Token:
    """The token that pads the rows of a stack: the padding token of its vocabulary, or any token without one."""
    id, reader = (
        checkpoint.model.config.pad_id or 0,
        checkpoint.tokenizer_of("encoder" if stack == "encoder" else "decoder"),
    )
    if reader is not checkpoint.tokenizer:  # the same mark may have another id there
        id = reader.id_of(checkpoint.tokenizer.tokens([id])[0].piece) or 0
    return reader.tokens([id])[0]


# --- the model run with another mask ----------------------------------------------------------------------------------


def own_blocked(trace: Trace, kind: Kind) -> Bool[ndarray, "n_layers n_q n_k"]:
    """What the model's own mask blocks in the layers of a kind of attention, which differ where some have a window."""
    sites = [site_name(kind, layer) for layer in range(n_layers(trace, kind))]
    return np.stack([trace[site].reason(0).cpu().numpy() for site in sites]) > 0


def layers_masked_alike(trace: Trace, kind: Kind, layer: int) -> tuple[int, ...]:
    """The layers whose own mask is that of `layer`: all of them, unless some have a sliding window."""
    own = own_blocked(trace, kind)
    return tuple(np.flatnonzero((own == own[layer]).all(axis=(1, 2))).tolist())


def mask_edit(trace: Trace, kind: Kind, blocked: Bool[ndarray, "*n_layers n_q n_k"]) -> Edit | None:
    """The edit that sets the mask of every layer of a kind of attention to `blocked`, added to the trace's own edit.

    `blocked` is of every layer, or one for all of them.  None where nothing is set by hand.
    """
    cells: list[Cell] = []
    own = own_blocked(trace, kind)
    wanted = np.broadcast_to(blocked, own.shape)
    for layer, query, key in np.argwhere(own != wanted).tolist():
        cell = -np.inf if wanted[layer, query, key] else 0.0
        cells.append(Cell(f"{site_name(kind, layer)}.mask", (query, key), cell))
    before = trace.edit
    if before is None:
        return Edit(tuple(cells)) if cells else None
    return Edit((*before.cells, *cells), before.unscaled, before.temperatures)


def rerun(checkpoint: AnyCheckpoint, tokens: Mapping[str, Sequence[Token]], edit: Edit | None) -> Trace:
    """A forward over exactly these tokens (stack -> tokens): nothing is tokenized or generated anew."""
    ids = {stack: [token.id for token in row] for stack, row in tokens.items()}
    if len(ids) == 2:
        return checkpoint.trace(ids=ids["encoder"], target_ids=ids["decoder"], edit=edit)
    return checkpoint.trace(ids=next(iter(ids.values())), edit=edit)


def painted_run(
    checkpoint: AnyCheckpoint, trace: Trace, kind: Kind, cells: Sequence[tuple[int, int]], layers: Sequence[int]
) -> Trace:
    """The traced text run again with these cells (query, key) of the model's own mask turned over in these layers."""
    blocked = own_blocked(trace, kind)
    for query, key in cells:
        blocked[list(layers), query, key] ^= True
    return rerun(checkpoint, dict(trace.tokens), mask_edit(trace, kind, blocked))


@dataclass(frozen=True)
class Expected:
    """The predictions at a position in two runs; `moved` is the largest |difference| of their logits."""

    before: Token
    before_probability: float
    after: Token
    after_probability: float
    moved: float


def expectations(checkpoint: AnyCheckpoint, before: Trace, after: Trace) -> tuple[Expected, ...]:
    """The predictions of two runs over as many tokens, at every position of the last stack."""
    moved = (after.logits - before.logits).abs().amax(dim=-1).tolist()
    sides = []
    for run in (before, after):
        best = run.logits.double().softmax(dim=-1).max(dim=-1)
        sides.append((checkpoint.tokenizer.tokens(best.indices.tolist()), best.values.tolist()))
    (first, p), (second, r) = sides
    return tuple(Expected(*row) for row in zip(first, p, second, r, moved, strict=True))
