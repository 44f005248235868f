"""A mask laid over the scores of a head; the padded batch of two sentences; the model run with another mask."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, UInt8
from numpy import ndarray

from vizformer.analysis.heads import Kind, n_layers, site_name
from vizformer.checkpoints import Checkpoint
from vizformer.explain.arrays import float64, softmax
from vizformer.explain.step import Proof
from vizformer.messages import N_
from vizformer.model import AttentionRecord, Cell, Edit, Mask, Trace
from vizformer.model.masks import total_bias
from vizformer.text import Token


@dataclass(frozen=True)
class Masked:
    """softmax(S + M) of one head, in float64 from the q and k that the model used.

    Attributes:
        scores: S = q k^T / sqrt(d_head) (plus the position bias, where the model has one), before the mask.
        bias: M, 0 or -inf.
        weights: rows sum to 1; a row that is blocked as a whole is 0.
        reasons: why a cell is blocked (`vizformer.model.Reason`), 0 where it is not.
        own: whether the model itself ran with this mask.
        proof: weights @ v against z: the model's own where `own`, else a fused call with this mask.
    """

    scores: Float[ndarray, "n_q n_k"]
    bias: Float[ndarray, "n_q n_k"]
    weights: Float[ndarray, "n_q n_k"]
    reasons: UInt8[ndarray, "n_q n_k"]
    own: bool
    proof: Proof


def masked_attention(record: AttentionRecord, head: int, mask: Mask | None = None) -> Masked:
    """The attention of a head with `mask` in place of its own; None keeps its own."""
    q, k, v = record.q[head], record.k[record.kv_head(head)], record.v[record.kv_head(head)]
    shape = (q.shape[0], k.shape[0])
    position = None if record.position_bias is None else record.position_bias[head]
    scores = float64(q) @ float64(k).T * record.scale
    scores = scores if position is None else scores + float64(position)
    own = record.reason(head).cpu().numpy()
    reasons = own if mask is None else mask.reason[0, 0].expand(shape).cpu().numpy()
    bias = np.where(reasons > 0, -np.inf, 0.0)
    weights = softmax(scores + bias)
    same = bool(np.array_equal(reasons > 0, own > 0))
    if same:
        anchor, z = N_("z, as the model computed it"), record.z(head)
    else:
        anchor = N_("z of F.scaled_dot_product_attention with this mask, from the model's q, k and v")
        added = total_bias(position, torch.from_numpy(bias).to(q.device, q.dtype))
        assert added is not None  # there is a mask
        z = F.scaled_dot_product_attention(
            q[None, None], k[None, None], v[None, None], attn_mask=added[None, None].to(q.dtype), scale=record.scale
        )[0, 0]
    values = float64(v)
    proof = Proof.compare(anchor, weights @ values, z, terms=weights @ np.abs(values))
    return Masked(scores, bias, weights, reasons, same, proof)


# --- a batch of two sentences -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PaddedRun:
    """Two sentences in one batch, the shorter one filled up on the right.

    Attributes:
        trace: of batch item 0, the first sentence.
        tokens: stack -> the first sentence's tokens with the padding after them.
        other: stack -> the second sentence's likewise.
        padding: stack -> True where a token of (first, second) only fills the batch [2, n].
        difference: how far the first sentence's outputs are from those it has alone, at its own tokens: largest
            |difference| of the last residual stream of every stack.
    """

    trace: Trace
    tokens: dict[str, tuple[Token, ...]]
    other: dict[str, tuple[Token, ...]]
    padding: dict[str, Bool[ndarray, "2 n"]]
    difference: float


def padded_run(checkpoint: Checkpoint, first: Trace, second: Trace) -> PaddedRun:
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


def _filling(checkpoint: Checkpoint, stack: str) -> Token:
    """What fills the rows of a stack: its vocabulary's padding, or just any token where it has none."""
    id, reader = checkpoint.model.config.pad_id or 0, checkpoint.reader("encoder" if stack == "encoder" else "decoder")
    if reader is not checkpoint.tokenizer:  # the same mark may have another id there
        id = reader.id_of(checkpoint.tokenizer.tokens([id])[0].piece) or 0
    return reader.tokens([id])[0]


# --- the model run with another mask ----------------------------------------------------------------------------------


def own_blocked(trace: Trace, kind: Kind) -> Bool[ndarray, "n_layers n_q n_k"]:
    """What the model's own mask blocks in the layers of a kind of attention, which differ where some have a window."""
    sites = [site_name(kind, layer) for layer in range(n_layers(trace, kind))]
    found: ndarray = np.stack([trace[site].reason(0).cpu().numpy() for site in sites]) > 0
    return found


def mask_edit(trace: Trace, kind: Kind, blocked: Bool[ndarray, "*n_layers n_q n_k"]) -> Edit | None:
    """What sets the mask of every layer of a kind of attention to exactly `blocked`, on top of the trace's own edit.

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


def rerun(checkpoint: Checkpoint, tokens: Mapping[str, Sequence[Token]], edit: Edit | None) -> Trace:
    """A forward over exactly these tokens (stack -> tokens): nothing is tokenized or generated anew."""
    ids = {stack: [token.id for token in row] for stack, row in tokens.items()}
    if len(ids) == 2:
        return checkpoint.trace(ids=ids["encoder"], target_ids=ids["decoder"], edit=edit)
    return checkpoint.trace(ids=next(iter(ids.values())), edit=edit)
