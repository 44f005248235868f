"""The heads of a long text: a small map of each, without ever holding a whole one."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from vizformer.analysis.heads.maps import Kind, kind_of, records_of
from vizformer.analysis.heads.measures import HeadMeasures, Sums
from vizformer.model import Trace
from vizformer.model.masks import total_bias
from vizformer.model.mixing import weights_of
from vizformer.model.records import AttentionRecord

AT_ONCE = 1 << 16
"""The number of cells up to which several pools of queries are computed together, a short text in one pass."""


@dataclass(frozen=True)
class HeadOverview:
    """All heads of one kind of attention at a glance: the largest weight in every pool of cells, and measures."""

    largest: Float[ndarray, "n_layers n_heads rows columns"]
    measures: HeadMeasures


def head_overview(trace: Trace, kind: Kind, rows: ndarray, columns: ndarray) -> HeadOverview:
    """`records_overview` of all heads of one kind of attention."""
    return records_overview(records_of(trace, kind), rows, columns)


@torch.inference_mode()
def records_overview(records: Sequence[AttentionRecord], rows: ndarray, columns: ndarray) -> HeadOverview:
    """The largest weight in every pool of cells, and the measures, for the heads of some layers.

    largest[l, h, i, j] = max of softmax(scores of head h in layer l) over queries rows[i] <= q < rows[i + 1] and keys
    columns[j] <= k < columns[j + 1].  One pool of queries, or a few, is computed at a time, over the keys that one of them
    sees, so that no more than heads x queries of a pool x keys numbers are held, or AT_ONCE.

    `rows`, `columns`: where the pools begin, rising from 0; the last one ends with the text.
    """
    found = [_of_layer(record, rows.tolist(), columns) for record in records]
    largest, sums = np.stack([one for one, _ in found]), [one.means() for _, one in found]
    entropy, distance, first, last, previous, own, after = np.stack([one for one, _ in sums], axis=1).astype(np.float32)
    received = np.stack([one for _, one in sums])
    if kind_of(records[0].site) == "cross":  # queries and keys are no tokens of one text
        return HeadOverview(largest, HeadMeasures(entropy, None, first, last, None, None, None, received))
    measures = HeadMeasures(entropy, distance, first, last, previous, own, after, received)
    return HeadOverview(largest, measures)


def _of_layer(record: AttentionRecord, rows: list[int], columns: ndarray) -> tuple[ndarray, Sums]:
    n_q, n_k = record.q.shape[1], record.k.shape[1]
    keys = record.k.float().repeat_interleave(record.n_heads // record.k.shape[0], dim=0).transpose(1, 2)
    out = np.zeros((record.n_heads, len(rows), len(columns)), dtype=np.float32)
    sums = Sums(record.n_heads, n_k, record.q.device)
    for index, pools in _together(rows, n_q, record.n_heads * n_k):
        start, end = pools[0], pools[-1]
        bias = total_bias(_rows(record.position_bias, start, end), _rows(record.bias, start, end))
        first, last = _seen(_rows(record.bias, start, end), n_k)
        if first == last:
            continue
        scores = torch.bmm(record.q[:, start:end].float(), keys[:, :, first:last]).mul_(record.scale)
        scores = record.scoring.bent(scores)
        if bias is not None:
            scores += bias[:, :, first:last]
        weights = weights_of(scores, _rows(record.sinks, start, end))  # [heads, queries of the pool, keys]
        _strongest(out[:, index : index + len(pools) - 1], weights, np.diff(pools).tolist(), columns, first, n_k)
        sums.add(weights, scores, start, first)
    return out, sums


def _together(rows: list[int], n_q: int, numbers: int) -> Iterator[tuple[int, list[int]]]:
    """Pools that are computed together: the place of the first, where each begins, and where the last one ends."""
    ends, first = [*rows[1:], n_q], 0
    for last, end in enumerate(ends):
        if last + 1 == len(ends) or (ends[last + 1] - rows[first]) * numbers > AT_ONCE:
            yield first, [*rows[first : last + 1], end]
            first = last + 1


def _strongest(out: ndarray, weights: Tensor, sizes: list[int], columns: ndarray, first: int, n_k: int) -> None:
    strongest = np.zeros((len(weights), len(sizes), n_k), dtype=np.float32)
    found = torch.stack([pool.amax(1) for pool in torch.split(weights, sizes, 1)], 1)
    strongest[:, :, first : first + weights.shape[2]] = found.cpu().numpy()
    out[:] = np.maximum.reduceat(strongest, columns, axis=2)


def _rows(bias: Tensor | None, start: int, end: int) -> Tensor | None:
    return bias if bias is None or bias.shape[1] == 1 else bias[:, start:end]


def _seen(mask: Tensor | None, n_k: int) -> tuple[int, int]:
    """The first key that one of the queries sees, and the one after the last."""
    if mask is None:
        return 0, n_k
    seen = (mask > -torch.inf).any(dim=0).any(dim=0).nonzero()
    return (0, 0) if not len(seen) else (int(seen[0]), int(seen[-1]) + 1)
