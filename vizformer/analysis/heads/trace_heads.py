"""What a trace answers to the contract between pictures and their numbers (`vizformer.components.contract`).

    numbers = TraceNumbers(checkpoint.trace("..."))
    numbers.heads("cross").operands(2, 0)   # q, k and what is added of layer 2, head 0
    numbers.stream("decoder.1.pre")

The numbers of the trace may lie in this process or in a file (`vizformer.model.trace_file.open_trace`): no map is kept, and
of a head only its own numbers are touched.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float, UInt8
from numpy import ndarray
from torch import Tensor

from vizformer.analysis.heads.maps import Kind, kind_of, kinds, records_of
from vizformer.analysis.heads.measures import NAMES, HeadOverview, records_overview
from vizformer.components.contract import Operands, pools, shades
from vizformer.errors import TraceError
from vizformer.model.records import AttentionRecord
from vizformer.model.trace import Trace
from vizformer.recorder.recorded_trace import RecordedAttention, RecordedTrace

_ROWS = 64  # of a mask that are looked at at once: they stay in the processor's cache


@dataclass(frozen=True)
class TraceHeads:
    """The heads of some attention calls of one kind.

    `overviews`: hands out `overview` of a layer where somebody keeps it, since it takes a pass over the whole text.
    """

    records: tuple[AttentionRecord, ...]
    overviews: Callable[[int], HeadOverview] | None = None

    @property
    def shape(self) -> tuple[int, int, int, int]:
        first = self.records[0]
        return len(self.records), first.n_heads, first.q.shape[1], first.k.shape[1]

    @property
    def scored(self) -> bool:
        return all(record.scored for record in self.records)

    @property
    def query_tokens(self) -> Sequence[str]:
        return self._labels(0)

    @property
    def key_tokens(self) -> Sequence[str]:
        return self._labels(1)

    def _labels(self, side: int) -> Sequence[str]:
        return self.records[0].tokens[side] or [str(number) for number in range(self.shape[2 + side])]

    @property
    def measures(self) -> tuple[str, ...]:
        crossed = kind_of(self.records[0].site) == "cross"  # there queries and keys are no tokens of one text
        return ("entropy", "first", "last") if crossed else NAMES

    def pattern(
        self, layer: int, head: int, queries: range | None = None, keys: range | None = None
    ) -> Float[ndarray, "n_q n_k"]:
        """The weights of a head; of some queries and keys those of the whole text, so that a row sums to less than 1."""
        record = self.records[layer]
        if queries is not None:
            record = record.of_queries(queries.start, queries.stop)
        columns = slice(None) if keys is None else slice(keys.start, keys.stop)
        return record.pattern(head)[:, columns].float().cpu().numpy()

    def scores(self, layer: int, head: int) -> Float[ndarray, "n_q n_k"]:
        """The scores that enter the softmax, before the mask."""
        return self.records[layer].scores(head).float().cpu().numpy()

    def operands(self, layer: int, head: int) -> Operands | None:
        """What a map is computed from, in float32; None where that is not all.

        It is not where a number was set by hand in the mask (it is added to a score), where heads have masks of their own,
        where scores are bent, where a row has a sink or no scores, or where what is added for the positions does not depend
        on their distance alone.
        """
        record = self.records[layer]
        record.check(head)
        if not (record.weighs_plainly and record.scoring.is_product) or not _only_blocks(
            record.bias, record.reason_map
        ):
            return None
        by_distance = None
        if record.position_bias is not None:
            added = record.position_bias[head].float().cpu()
            by_distance = torch.cat([added[:, 0].flip(0), added[0, 1:]]).numpy()
            (step,) = by_distance.strides
            again = np.lib.stride_tricks.as_strided(by_distance[len(added) - 1 :], added.shape, (-step, step))
            if not np.array_equal(again, added.numpy()):
                return None
        q, k = record.q[head].float() * record.scale, record.k[record.kv_head(head)].float()
        return Operands(q.cpu().numpy(), k.cpu().numpy(), by_distance)

    def blocked(self, layer: int | None = None) -> UInt8[ndarray, "*n_layers n_q n_k"]:
        """Why cells are blocked (`vizformer.model.Reason`), 0 where any head sees them: one map, or one a layer where they
        differ."""
        if layer is not None:
            return _reasons(self.records[layer]).cpu().numpy()
        maps = [_reasons(record) for record in self.records]
        if all(one.data_ptr() == maps[0].data_ptr() or torch.equal(one, maps[0]) for one in maps):
            return maps[0].cpu().numpy()
        return np.stack([one.cpu().numpy() for one in maps])

    def overview(self, layer: int) -> HeadOverview:
        """The small maps and the measures of one layer, from one pass over its queries."""
        record, (_, _, queries, keys) = self.records[layer], self.shape
        for head in range(record.n_heads):
            record.check(head)
        return records_overview([record], pools(queries), pools(keys))

    def small(self, layer: int) -> tuple[UInt8[ndarray, "n_heads rows columns"], Mapping[str, ndarray]]:
        found = (self.overviews or self.overview)(layer)
        there = found.largest[0].any(axis=(1, 2))  # a head that others have and this layer has not sees nothing
        measured = {name: getattr(found.measures, name)[0] for name in self.measures}
        return shades(found.largest[0]), {name: np.where(there, values, np.nan) for name, values in measured.items()}


@dataclass(frozen=True)
class TraceNumbers:
    trace: Trace

    @property
    def about(self) -> Mapping[str, str]:
        return self.trace.about

    @property
    def kinds(self) -> tuple[Kind, ...]:
        return kinds(self.trace)

    @property
    def streams(self) -> tuple[str, ...]:
        return tuple(self.trace.residuals)

    def heads(self, kind: str) -> TraceHeads:
        """The heads of one kind.

        Raises:
            TraceError: a trace that is empty or has none of the kind.
        """
        return TraceHeads(records_of(self.trace, kind))

    def stream(self, site: str) -> Float[ndarray, "n d_model"]:
        """The residual stream at a site, whose numbers must be finite."""
        found = self.trace.residual(site).float().cpu().numpy()
        if not np.isfinite(found).all():
            raise TraceError("{name} has numbers that are not finite.", name=site)
        return found

    def tokens(self, site: str) -> Sequence[str]:
        """The labels of the rows of the stream at a site."""
        known = self.trace.tokens.get(site.partition(".")[0], ())
        return [token.text for token in known] or [str(number) for number in range(len(self.trace.residual(site)))]


def _only_blocks(mask: Tensor | None, reason: Tensor | None) -> bool:
    """Whether a mask is -inf where there is a reason, and 0 elsewhere, for all heads alike."""
    if mask is None or reason is None:
        return True
    if len(mask) > 1:
        return False
    mask, reason = mask[0], reason.expand_as(mask)[0]
    blocks = (slice(start, start + _ROWS) for start in range(0, len(mask), _ROWS))
    return all(
        torch.equal(mask[rows], torch.zeros_like(mask[rows]).masked_fill_(reason[rows] > 0, -torch.inf))
        for rows in blocks
    )


def _reasons(record: AttentionRecord) -> UInt8[Tensor, "n_q n_k"]:
    maps = record.reason_map
    if maps is None or len(maps) == 1:
        return record.reason(0)
    return maps.amin(0).expand(record.q.shape[1], record.k.shape[1])


# What a recorded run of any model answers to the contract between pictures and their numbers.
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
    return TraceHeads(tuple(replace(one.drawn, site=what.format(number)) for number, one in enumerate(calls)))
