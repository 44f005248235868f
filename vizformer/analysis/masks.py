"""Runs with other masks than the model's own, and the usual mistakes with masks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from numpy import ndarray
from torch import Tensor, nn

from vizformer.analysis.heads.maps import Kind, n_layers, site_name
from vizformer.checkpoints import AnyCheckpoint
from vizformer.errors import TraceError
from vizformer.explain.arrays import softmax
from vizformer.model import AttentionRecord, Cell, Edit, Trace
from vizformer.model.input_check import row_at
from vizformer.model.masks import causal_mask, window_mask
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
    if trace.edit is None and not cells:
        return None
    before = trace.edit or Edit()
    return replace(before, cells=(*before.cells, *cells))


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


# Leakage, measured: which outputs move when one token is changed.
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


# Conventions for the same mask, and what goes wrong where they are mixed up or the mask is put in the wrong place.

# --- four notations of one mask ---------------------------------------------------------------------------------------


def notations(blocked: Bool[ndarray, "n_q n_k"]) -> dict[str, ndarray]:
    """One mask in the four notations that are in use.

    "tutorial": 1 = visible, 0 = blocked (`scores.masked_fill(mask == 0, -inf)`); "module": True = blocked
    (`attn_mask` of nn.MultiheadAttention and nn.Transformer); "fused": True = visible (`attn_mask` of
    F.scaled_dot_product_attention); "additive": 0 and -inf, added to the scores.
    """
    return {
        "tutorial": (~blocked).astype(np.int64),
        "module": blocked.copy(),
        "fused": ~blocked,
        "additive": np.where(blocked, -np.inf, 0.0),
    }


def results(record: AttentionRecord, head: int, blocked: Bool[ndarray, "n_q n_k"]) -> dict[str, Float[ndarray, "n d"]]:
    """z of one head from each notation, each by the call that it belongs to (names as in `notations`)."""
    q, k, v = _operands(record, head)
    mask = {name: torch.from_numpy(value) for name, value in notations(blocked).items()}
    scores = (q @ k.T * record.scale).masked_fill(mask["tutorial"] == 0, -torch.inf)
    found = {
        "tutorial": torch.softmax(scores, dim=-1) @ v,
        "module": _module(q, k, v, record.scale, mask["module"]),
        "fused": F.scaled_dot_product_attention(q[None], k[None], v[None], attn_mask=mask["fused"], scale=record.scale)[
            0
        ],
        "additive": F.scaled_dot_product_attention(
            q[None], k[None], v[None], attn_mask=mask["additive"].to(q.dtype), scale=record.scale
        )[0],
    }
    return {name: z.double().cpu().numpy() for name, z in found.items()}


def agreement(record: AttentionRecord, head: int, blocked: Bool[ndarray, "n_q n_k"]) -> dict[str, float]:
    """Largest |difference| of each of `results` from softmax(q k^T / sqrt(d_head) + M) v in float64.

    Without a position bias, which the calls of the field do not know.
    """
    q, k, v = (x.double().cpu().numpy() for x in _operands(record, head))
    z = softmax(q @ k.T * record.scale + np.where(blocked, -np.inf, 0.0)) @ v
    return {name: float(np.abs(found - z).max()) for name, found in results(record, head, blocked).items()}


def mixed_up(scores: Float[ndarray, "n_q n_k"], blocked: Bool[ndarray, "n_q n_k"]) -> Float[ndarray, "n_q n_k"]:
    """The weights where a mask is read the other way round: what was to be hidden is all that is seen.

    NaN where that leaves nothing, as exp / sum gives it.
    """
    return naive_softmax(np.where(blocked, scores, -np.inf))


def nan_rows(weights: Float[ndarray, "n_q n_k"]) -> int:
    """The number of rows whose weights are all NaN."""
    return int(np.isnan(weights).all(axis=1).sum())


def _module(q: Tensor, k: Tensor, v: Tensor, scale: float, blocked: Tensor) -> Tensor:
    """nn.MultiheadAttention with one head whose four matrices are the identity; q carries a scale of ours."""
    width, cut = q.shape[1], v.shape[1]
    v = F.pad(v, (0, max(0, width - cut)))  # its values are as wide as its keys: 0 changes nothing
    q, k = (F.pad(t, (0, v.shape[1] - width)) for t in (q, k))
    scale, width = scale * v.shape[1] ** 0.5, v.shape[1]
    module = nn.MultiheadAttention(width, 1, bias=False, batch_first=True, dtype=q.dtype).eval()
    with torch.inference_mode():
        module.in_proj_weight.copy_(torch.eye(width).repeat(3, 1))
        module.out_proj.weight.copy_(torch.eye(width))
        z, _ = module(q[None] * scale, k[None], v[None], attn_mask=blocked, need_weights=False)
    return z[0, :, :cut]


def _operands(record: AttentionRecord, head: int) -> tuple[Tensor, Tensor, Tensor]:
    """q, k and v of one head in float32 on the CPU, since notations are compared here and not precisions."""
    kv = record.kv_head(head)
    q, k, v = (x.detach().cpu().float() for x in (record.q[head], record.k[kv], record.v[kv]))
    return q, k, v


# --- four mistakes ----------------------------------------------------------------------------------------------------


def naive_softmax(scores: Float[ndarray, "*n n_k"]) -> Float[ndarray, "*n n_k"]:
    """exp(s - max) / sum as it is written in most code: NaN where everything is -inf."""
    with np.errstate(invalid="ignore"):
        e = np.exp(scores - scores.max(axis=-1, keepdims=True))
        found: ndarray = e / e.sum(axis=-1, keepdims=True)
    return found


def masked_after(scores: Float[ndarray, "n_q n_k"], blocked: Bool[ndarray, "n_q n_k"]) -> Float[ndarray, "n_q n_k"]:
    """softmax first, then the blocked weights set to 0: rows sum to less than 1, and by how much the future decides."""
    return np.where(blocked, 0.0, softmax(scores))


def left_over(scores: Float[ndarray, "n_q n_k"], blocked: Bool[ndarray, "n_q n_k"]) -> Float[ndarray, " n_q"]:
    """The sum of each row of `masked_after`."""
    return masked_after(scores, blocked).sum(axis=1)


def given_away(scores: Float[ndarray, "n_q n_k"], blocked: Bool[ndarray, "n_q n_k"]) -> Float[ndarray, " n_q"]:
    """The weight of each row that softmax gave to blocked keys: 1 less the sum of the row in `masked_after`."""
    return np.where(blocked, softmax(scores), 0.0).sum(axis=1)


def zeroed(scores: Float[ndarray, "n_q n_k"], blocked: Bool[ndarray, "n_q n_k"]) -> Float[ndarray, "n_q n_k"]:
    """The blocked scores set to 0 instead of -inf: exp(0) = 1, and they keep a share."""
    return softmax(np.where(blocked, 0.0, scores))


def kept_by_blocked(scores: Float[ndarray, "n_q n_k"], blocked: Bool[ndarray, "n_q n_k"]) -> Float[ndarray, " n_q"]:
    """The weight that the blocked cells of each row keep together where their scores are set to 0."""
    return (zeroed(scores, blocked) * blocked).sum(axis=1)


def blind_row(
    scores: Float[ndarray, "n_q n_k"], blocked: Bool[ndarray, "n_q n_k"], row: int
) -> Float[ndarray, "n_q n_k"]:
    """exp / sum of the masked scores where every key of query `row` is blocked as well: that row is NaN."""
    masked = np.where(blocked, -np.inf, scores)
    masked[row] = -np.inf
    return naive_softmax(masked)


def blind_output(record: AttentionRecord, head: int, blocked: Bool[ndarray, "n_q n_k"], row: int) -> float:
    """Largest |z| that the fused call gives for a query of which every key is blocked; NaN if it gives NaN."""
    blocked = blocked.copy()
    blocked[row] = True
    return float(np.abs(results(record, head, blocked)["additive"][row]).max())


def poisoned(weights: Float[ndarray, "n_q n_k"], row: int) -> Bool[ndarray, " n_q"]:
    """Which rows of weights @ v are NaN once the value at position `row` is: 0 * NaN is NaN."""
    v = np.ones((weights.shape[1], 1))
    v[row] = np.nan
    with np.errstate(invalid="ignore"):
        found: ndarray = np.isnan(weights @ v)[:, 0]
    return found


How = Literal["fill", "add"]
Precision = Literal["float32", "bfloat16", "float16"]
PRECISIONS: tuple[Precision, ...] = ("float32", "bfloat16", "float16")


@dataclass(frozen=True)
class Outcome:
    """The result of a large negative number in place of -inf, in a precision."""

    precision: Precision  # of scores and mask
    how: How  # "fill" sets the blocked scores to it (`masked_fill`), "add" adds it to them
    value: float | None  # the number; None for the smallest finite one of the precision
    stored: float  # what becomes of `value` in that precision
    refused: bool = False  # whether PyTorch raises instead
    blocked_weight: float = 0.0  # the weight that blocked cells of the row get together; NaN where the row is NaN
    blind_weight: float = 0.0  # the same for a row in which everything is blocked


WAYS: tuple[tuple[How, float | None], ...] = (
    ("fill", -1e9),
    ("add", -1e9),
    ("fill", -1e4),
    ("fill", None),
    ("fill", -np.inf),
)
"""The ways in which published code blocks a cell, and the number it uses; None: the precision's smallest finite one."""


def in_every_precision(row: Float[ndarray, " n_k"], blocked: Bool[ndarray, " n_k"]) -> tuple[Outcome, ...]:
    """`in_precision` for every one of `WAYS` in every one of `PRECISIONS`."""
    return tuple(in_precision(row, blocked, name, how, value) for how, value in WAYS for name in PRECISIONS)


def in_precision(
    row: Float[ndarray, " n_k"], blocked: Bool[ndarray, " n_k"], precision: Precision, how: How, value: float | None
) -> Outcome:
    """One row of scores, masked and passed through softmax in a precision, all by PyTorch itself."""
    dtype = getattr(torch, precision)
    number = torch.finfo(dtype).min if value is None else value
    scores, hidden = torch.from_numpy(row).to(dtype), torch.from_numpy(blocked)
    stored = float(torch.tensor(number, dtype=dtype))
    try:
        part, whole = (_weights(scores, mask, how, number) for mask in (hidden, torch.ones_like(hidden)))
    except (RuntimeError, OverflowError):  # "value cannot be converted to type at::Half without overflow"
        return Outcome(precision, how, value, stored, refused=True)
    return Outcome(precision, how, value, stored, False, float(part[hidden].sum()), float(whole.sum()))


def _weights(scores: Tensor, blocked: Tensor, how: How, number: float) -> Tensor:
    if how == "fill":
        return torch.softmax(scores.masked_fill(blocked, number), dim=-1).double()
    mask = torch.zeros_like(scores)
    mask[blocked] = torch.tensor(number, dtype=scores.dtype)  # beyond the range of the precision: -inf
    return torch.softmax(scores + mask, dim=-1).double()
