"""All heads of a layer as one map: their mean, their largest weights, or what they pass on through the layers.

    mean[l]     = 1/H sum_h A[l, h]                       each row sums to 1, as those of the heads do
    largest[l]  = max_h A[l, h], cell by cell              rows sum to more than 1: it is no attention, but an overview
    rollout[l]  = R_l R_(l-1) ... R_0,  R_l = (mean[l] + I) / 2, each row divided by its sum

The rollout takes every layer to add what it reads to what is there already, half and half (the residual stream): cell
(i, j) is then the share of token j of the input in what stands at position i after layer l.

Some rows are computed at a time, up to the last key that any of them sees: the maps of single heads are never there as a
whole, and of causal maps half of the work falls away, of their products two thirds.

Source: Abnar & Zuidema 2020, "Quantifying Attention Flow in Transformers", equation 1 and section 3.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from vizformer.analysis.heads.maps import Kind, n_layers, site_name
from vizformer.model import Trace
from vizformer.model.records import AttentionRecord

Aggregate = Literal["mean", "max", "rollout"]


_ROWS = 64  # of a map that are computed at a time: they stay in the processor's cache


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
