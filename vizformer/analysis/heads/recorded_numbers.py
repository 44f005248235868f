"""What a recorded run of any model answers to the contract between pictures and their numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from vizformer.analysis.heads.trace_heads import TraceHeads
from vizformer.components.contract import Arrays
from vizformer.errors import TraceError
from vizformer.recorder.recorded_trace import RecordedAttention, RecordedTrace


@dataclass(frozen=True)
class RecordedNumbers:
    """One run of a recorded model; its kinds of attention are called by the lists of blocks: "transformer.h",
    "decoder.layers cross"; of layers of several shapes each has a kind of its own."""

    trace: RecordedTrace

    @property
    def about(self) -> Mapping[str, str]:
        return {"model": self.trace.model_name}

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(self._groups())

    @property
    def streams(self) -> tuple[str, ...]:
        return self.trace.streams

    def _groups(self) -> dict[str, list[RecordedAttention]]:
        found: dict[tuple[str, tuple[int, ...]], list[RecordedAttention]] = {}
        for one in self.trace.attention:
            name = f"{one.stack} cross" if one.is_cross else one.stack or "self"
            found.setdefault((name, (one.n_heads, one.n_q, one.n_k)), []).append(one)
        names = [name for name, _ in found]
        return {
            name if names.count(name) == 1 else f"{name} {' x '.join(map(str, shape))}": ones
            for (name, shape), ones in found.items()
        }

    def sites(self, kind: str) -> tuple[str, ...]:
        """The sites of a kind, a layer each.

        Raises:
            TraceError: no such kind; so `heads`.
        """
        return tuple(one.site for one in self._of(kind))

    def _of(self, kind: str) -> list[RecordedAttention]:
        groups = self._groups()
        if kind not in groups:
            known = ", ".join(groups) or "-"
            raise TraceError("This model has no {kind} attention; it has: {known}.", kind=kind, known=known)
        return groups[kind]

    def heads(self, kind: str) -> TraceHeads | Arrays:
        """The heads of one kind; without scores where a map is no softmax of scaled products."""
        return recorded_heads(self._of(kind))

    def stream(self, site: str) -> Float[ndarray, "n d_model"]:
        return self.trace.residual(site).float().cpu().numpy()

    def tokens(self, site: str) -> Sequence[str]:
        stack = next(point.stack for point in self.trace.points if point.name == site)
        n, labels = len(self.trace.residual(site)), self.trace.labels(stack)
        return labels if len(labels) == n else [str(number) for number in range(n)]


def recorded_heads(calls: Sequence[RecordedAttention]) -> TraceHeads | Arrays:
    """Attention calls of one shape, a layer each.

    Raises:
        TraceError: numbers that are no weights (0 to 1).
    """
    first = calls[0]
    records = [one.record for one in calls]
    if all(record is not None for record in records):
        what = "encoder.{}.cross" if first.is_cross else "encoder.{}.self"
        named = [replace(record, site=what.format(number)) for number, record in enumerate(records)]  # type: ignore[type-var]
        return TraceHeads(tuple(named))  # type: ignore[arg-type]
    weights = np.stack([one.maps().float().cpu().numpy() for one in calls])
    if np.nanmin(weights) < 0 or np.nanmax(weights) > 1 + 1e-5:
        raise TraceError(
            "What multiplies the values at {site} are no shares of 1, which pictures show.", site=first.site
        )
    queries, keys = (
        labels or tuple(map(str, range(n))) for labels, n in zip(first.tokens, (first.n_q, first.n_k), strict=True)
    )
    return Arrays(np.clip(weights, 0, 1), queries, keys)
