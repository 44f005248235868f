"""The maps of all heads of one kind of attention."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float, UInt8
from numpy import ndarray

from vizformer.errors import TraceError
from vizformer.model.records import AttentionRecord
from vizformer.model.trace import Trace

Kind = Literal["encoder", "decoder", "cross"]
_SUFFIX: dict[Kind, tuple[str, str]] = {
    "encoder": ("encoder", "self"),
    "decoder": ("decoder", "self"),
    "cross": ("decoder", "cross"),
}


@dataclass(frozen=True)
class HeadMaps:
    """All heads of one kind of attention, over its layers.

    Attributes:
        weights: attention weights; each row sums to 1 (0 where everything is blocked). Beside a state |M| in shares.
        scores: q k^T / sqrt(d_head), before the mask. Beside a state M, which has both signs.
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
    return tuple(record.padded(most) for record in records)


def head_maps(trace: Trace, kind: Kind, *, queries: int | None = None) -> HeadMaps:
    """Recomputes the maps of every head of one kind from the recorded q and k, of all or the first rows."""
    records = records_of(trace, kind)
    if queries is not None:
        records = tuple(record.of_queries(0, queries) for record in records)
    with torch.inference_mode():
        scores = [
            torch.stack([r.pattern(h) if r.gates is not None else r.scores(h) for h in range(r.n_heads)])
            for r in records
        ]
        weights = [torch.stack([r.shares(h) for h in range(r.n_heads)]) for r in records]
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
