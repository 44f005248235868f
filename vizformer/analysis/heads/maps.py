"""The maps of all heads of one kind of attention."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float, UInt8
from numpy import ndarray
from torch import Tensor

from vizformer.errors import TraceError
from vizformer.model import Trace
from vizformer.model.masks import Reason
from vizformer.model.records import AttentionRecord

Kind = Literal["encoder", "decoder", "cross"]
_SUFFIX: dict[Kind, tuple[str, str]] = {
    "encoder": ("encoder", "self"),
    "decoder": ("decoder", "self"),
    "cross": ("decoder", "cross"),
}

Aggregate = Literal["mean", "max", "rollout"]

_ROWS = 64  # of a map that are computed at a time: they stay in the processor's cache


@dataclass(frozen=True)
class _Map:
    """A map, and for each block of its rows how many of the first keys are all that its rows see, itself among them."""

    weights: Tensor
    seen: list[int]

    def after(self, before: "_Map") -> "_Map":
        """The matrix product of two square maps: this one after `before`."""
        found, seen = torch.zeros_like(self.weights), list[int]()
        for first, keys in zip(range(0, len(found), _ROWS), self.seen, strict=True):
            rows, inputs = slice(first, first + _ROWS), max(before.seen[: -(-keys // _ROWS)])
            torch.mm(self.weights[rows, :keys], before.weights[:keys, :inputs], out=found[rows, :inputs])
            seen.append(inputs)
        return _Map(found, seen)


@dataclass(frozen=True)
class HeadMaps:
    """All heads of one kind of attention, over its layers.

    Attributes:
        weights: attention weights; each row sums to 1, less the share of a sink (0 where everything is blocked).
        scores: q k^T / sqrt(d_head), before the mask; NaN where a recorded model has weights alone.
        reasons: why a cell is blocked (`vizformer.model.Reason`), 0 where it is not; the same for all heads of a layer.
            Layers differ where some of them have a sliding window, or a cell was blocked by hand.
    """

    weights: Float[ndarray, "n_layers n_heads n_q n_k"]
    scores: Float[ndarray, "n_layers n_heads n_q n_k"]
    reasons: UInt8[ndarray, "n_layers n_q n_k"]


def kinds(trace: Trace) -> tuple[Kind, ...]:
    """The kinds of attention that the traced model has, in the order of the data flow."""
    return tuple(kind for kind in _SUFFIX if site_name(kind, 0) in trace.sites)


def site_name(kind: Kind, layer: int) -> str:
    """The trace's name of a layer's attention: ("cross", 2) is "decoder.2.cross"."""
    stack, suffix = _SUFFIX[kind]
    return f"{stack}.{layer}.{suffix}"


def kind_of(site: str) -> Kind:
    """The kind of attention of a site: of "decoder.2.cross" it is "cross"."""
    stack, _, what = site.split(".")
    return "cross" if what == "cross" else "encoder" if stack == "encoder" else "decoder"


def n_layers(trace: Trace, kind: Kind) -> int:
    stack, suffix = _SUFFIX[kind]
    return sum(site.startswith(f"{stack}.") and site.endswith(f".{suffix}") for site in trace.sites)


def records_of(trace: Trace, kind: str) -> tuple[AttentionRecord, ...]:
    """The attention calls of one kind, a layer each; those with fewer heads than others get some that see nothing.

    Raises:
        TraceError: a trace that is empty, or of a model that has no such attention.
    """
    if not trace.sites:
        raise TraceError("This trace is empty: pass it to a forward first, as model(ids, trace=trace).")
    found = next((known for known in kinds(trace) if known == kind), None)
    if found is None:
        raise TraceError(
            "This model has no {kind} attention; it has: {known}.", kind=kind, known=", ".join(kinds(trace))
        )
    records = [trace[site_name(found, layer)] for layer in range(n_layers(trace, found))]
    most = max(record.n_heads for record in records)
    return tuple(record if record.n_heads == most else _with_heads(record, most) for record in records)


def _with_heads(record: AttentionRecord, n: int) -> AttentionRecord:
    """An attention record padded to n heads; the added heads have all keys blocked."""
    n_q, n_k, more = record.q.shape[1], record.k.shape[1], n - record.n_heads
    group = record.n_heads // len(record.k)

    def filled(x: Tensor, value: float | int = 0.0) -> Tensor:
        return torch.cat([x, x.new_full((more, *x.shape[1:]), value)])

    def of_all(x: Tensor | None) -> Tensor:
        return record.q.new_zeros(record.n_heads, n_q, n_k) if x is None else x.expand(record.n_heads, n_q, n_k)

    reason = of_all(record.reason_map).to(torch.uint8)
    return replace(
        record,
        q=filled(record.q),
        k=filled(record.k.repeat_interleave(group, 0)),
        v=filled(record.v.repeat_interleave(group, 0)),
        bias=filled(of_all(record.bias), -torch.inf),
        reason_map=filled(reason, int(Reason.OF_THE_MODEL)),
        position_bias=None if record.position_bias is None else filled(record.position_bias),
        sinks=None if record.sinks is None else filled(record.sinks),
    )


def head_maps(trace: Trace, kind: Kind, *, queries: int | None = None) -> HeadMaps:
    """Recomputes the maps of every head of one kind from the recorded q and k, of all or the first rows."""
    records = records_of(trace, kind)
    if queries is not None:
        records = tuple(record.of_queries(0, queries) for record in records)
    with torch.inference_mode():
        known = [r.all_scores() if r.scored else None for r in records]
        weights = [r.all_patterns(s) for r, s in zip(records, known, strict=True)]
        scores = [torch.full_like(w, torch.nan) if s is None else s for s, w in zip(known, weights, strict=True)]
    return HeadMaps(
        np.stack([w.float().cpu().numpy() for w in weights]),
        np.stack([s.float().cpu().numpy() for s in scores]),
        np.stack([r.reason(0).cpu().numpy() for r in records]),
    )


def as_table(
    cells: Sequence[tuple[int, ...]], values: Sequence[float] | Float[ndarray, " cells"]
) -> Float[ndarray, "*shape"]:
    """Numbers in the cells of a table; NaN in the others: a layer may have fewer heads than another."""
    found = np.full(1 + np.max(cells, axis=0), np.nan)
    found[tuple(np.transpose(cells))] = values
    return found


def without_keys(trace: Trace, kind: Kind, keys: Sequence[int]) -> Trace:
    """The trace as though no query of one kind of attention had seen `keys`; a row that saw only them sees nothing.

        a'[i, j] = a[i, j] / (1 - sum over the left-out keys l of a[i, l])   for every other key j,   a'[i, l] = 0

    which is the softmax over the other keys alone: a way of looking, as where a first token takes most of the attention of
    a head (Xiao et al. 2023, "Efficient Streaming Language Models with Attention Sinks"), not another run of the model.
    Everything that is computed from a trace's maps holds for it too; the residual stream is that of the model.
    """
    masks: dict[tuple[int, int], tuple[Tensor, Tensor]] = {}  # layers share a mask, and go on sharing it
    records = {}
    for layer in range(n_layers(trace, kind)):
        record = trace[site_name(kind, layer)]
        same = (_place(record.bias), _place(record.reason_map))
        if same not in masks:
            masks[same] = _blocked(record, keys)
        records[record.site] = replace(record, bias=masks[same][0], reason_map=masks[same][1])
    return trace.with_records(records)


def _place(tensor: Tensor | None) -> int:
    return 0 if tensor is None else tensor.data_ptr()


def _blocked(record: AttentionRecord, keys: Sequence[int]) -> tuple[Tensor, Tensor]:
    """The mask and its reasons, with the keys blocked for every query that saw them."""
    shape, device = (1, 1, record.k.shape[1]), record.q.device
    bias = torch.zeros(shape, device=device) if record.bias is None else record.bias.clone()
    reason = torch.zeros(shape, dtype=torch.uint8, device=device)
    if record.reason_map is not None:
        reason = record.reason_map.clone()
    for key in keys:
        bias[..., key] = -torch.inf
        reason[..., key] = torch.where(reason[..., key] > 0, reason[..., key], int(Reason.LEFT_OUT))
    return bias, reason


# All heads of a layer as one map: their mean, their largest weights, or what they pass on through the layers.
#
#     mean[l]     = 1/H sum_h A[l, h]                       each row sums to 1, as those of the heads do
#     largest[l]  = max_h A[l, h], cell by cell              rows sum to more than 1: it is no attention, but an overview
#     rollout[l]  = R_l R_(l-1) ... R_0,  R_l = (mean[l] + I) / 2, each row divided by its sum
#
# The rollout takes every layer to add what it reads to what is there already, half and half (the residual stream):
# cell (i, j) is then the share of token j of the input in what stands at position i after layer l.
#
# Some rows are computed at a time, up to the last key that any of them sees: the maps of single heads are never
# there as a whole, and of causal maps half of the work falls away, of their products two thirds.
#
# Source: Abnar & Zuidema 2020, "Quantifying Attention Flow in Transformers", equation 1 and section 3.
def aggregates(trace: Trace, kind: Kind, how: Aggregate) -> Iterator[Float[ndarray, "n_q n_k"]]:
    """The map of each layer, in the order of the layers; no more than three maps are held at a time.

    Raises:
        ValueError: a rollout of cross-attention, whose queries and keys are different texts.
    """
    if how == "rollout" and kind == "cross":
        raise ValueError("a rollout multiplies the layers of one text; cross-attention has two")
    before: _Map | None = None
    for layer in range(n_layers(trace, kind)):
        with torch.inference_mode():
            found = _together(trace[site_name(kind, layer)], how)
            if how == "rollout":
                found.weights.mul_(0.5).diagonal().add_(0.5)
                found.weights.div_(found.weights.sum(-1, keepdim=True))
                found = before = found if before is None else found.after(before)
        yield found.weights.cpu().numpy()


def layer_aggregate(trace: Trace, kind: Kind, how: Literal["mean", "max"], layer: int) -> Float[ndarray, "n_q n_k"]:
    """The map of one layer, for which no other is computed."""
    with torch.inference_mode():
        return _together(trace[site_name(kind, layer)], how).weights.cpu().numpy()


def _together(record: AttentionRecord, how: Aggregate) -> _Map:
    """The largest weights of all heads, or their mean."""
    n_q, n_k = record.q.shape[1], record.k.shape[1]
    found, seen = torch.zeros(n_q, n_k, device=record.q.device), list[int]()
    for first in range(0, n_q, _ROWS):
        end = min(n_q, first + _ROWS)
        rows = record.of_queries(first, end)
        seen.append(max(_seen(rows), min(end, n_k)))
        rows, part = _of_first_keys(rows, seen[-1]), found[first:end, : seen[-1]]
        for head in range(record.n_heads):
            weights = rows.pattern(head).float()
            part.copy_(torch.maximum(part, weights) if how == "max" else part + weights)
        if how != "max":
            part.div_(record.n_heads)
    return _Map(found, seen)


def _seen(record: AttentionRecord) -> int:
    """The smallest number of first keys that includes every key that some query sees."""
    if record.bias is None:
        return record.k.shape[1]
    seen = (record.bias > -torch.inf).flatten(0, 1).any(0).nonzero()
    return int(seen[-1]) + 1 if len(seen) else 0


def _of_first_keys(record: AttentionRecord, end: int) -> AttentionRecord:
    """An attention record cut to its first `end` keys; it is exact where all later keys are blocked."""

    def columns(x: Tensor | None) -> Tensor | None:
        return None if x is None else x[..., :end]

    return replace(
        record,
        k=record.k[:, :end],
        v=record.v[:, :end],
        bias=columns(record.bias),
        reason_map=columns(record.reason_map),
        position_bias=columns(record.position_bias),
    )
