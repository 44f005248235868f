"""What a recorded run of any model answers to the contract between pictures and their numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from jaxtyping import Float
from numpy import ndarray

from vizformer.analysis.heads.trace_heads import TraceHeads
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

    def heads(self, kind: str) -> TraceHeads:
        """The heads of one kind; of a map that is no softmax of scaled products there are no scores."""
        return recorded_heads(self._of(kind))

    def stream(self, site: str) -> Float[ndarray, "n d_model"]:
        return self.trace.residual(site).float().cpu().numpy()

    def tokens(self, site: str) -> Sequence[str]:
        stack = next(point.stack for point in self.trace.points if point.name == site)
        n, labels = len(self.trace.residual(site)), self.trace.labels(stack)
        return labels if len(labels) == n else [str(number) for number in range(n)]


def recorded_heads(calls: Sequence[RecordedAttention]) -> TraceHeads:
    """Attention calls of one shape, a layer each.

    Raises:
        TraceError: numbers that are no weights (0 to 1).
    """
    what = "encoder.{}.cross" if calls[0].is_cross else "encoder.{}.self"
    records = []
    for number, one in enumerate(calls):
        if (record := one.record) is None:
            raise TraceError(
                "At {site} the values are multiplied by numbers that are no attention weights: a row "
                "does not sum to 1. VizFormer draws only attention weights.",
                site=one.site,
            )
        records.append(replace(record, site=what.format(number)))
    return TraceHeads(tuple(records))
