"""The heads of a long text: a small map of each, and the whole map of one, without ever holding all of them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, UInt8
from numpy import ndarray
from torch import Tensor

from vizformer.analysis.heads.maps import Kind, n_layers, site_name
from vizformer.analysis.heads.measures import HeadMeasures, Sums
from vizformer.model import Trace
from vizformer.model.masks import total_bias
from vizformer.model.trace import AttentionRecord

_ROWS = 64  # of a mask that are looked at at once: they stay in the processor's cache


@dataclass(frozen=True)
class OneHead:
    """The map of one head.

    Attributes:
        weights: attention weights; each row sums to 1 (0 where everything is blocked).
        scores: q k^T / sqrt(d_head), before the mask.
    """

    weights: Float[ndarray, "n_q n_k"]
    scores: Float[ndarray, "n_q n_k"]


@dataclass(frozen=True)
class HeadOverview:
    """All heads of one kind of attention at a glance.

    Attributes:
        largest: the largest weight in every pool of cells.
        measures: of the whole text.
    """

    largest: Float[ndarray, "n_layers n_heads rows columns"]
    measures: HeadMeasures


@dataclass(frozen=True)
class HeadOperands:
    """What the map of one head is computed from, n x d_head numbers where the map has n x n.

        score(i, j) = q_i . k_j + by_distance[j - i + n_q - 1],   weights = softmax over the keys that i sees

    Attributes:
        q: the queries, multiplied by the scale already.
        k: the keys, those of the head's group where several heads share them.
        by_distance: what ALiBi or T5 add for the distance from query to key; None where nothing is added.
    """

    q: Float[ndarray, "n_q d_head"]
    k: Float[ndarray, "n_k d_head"]
    by_distance: Float[ndarray, " distances"] | None


@torch.inference_mode()
def head_operands(trace: Trace, kind: Kind, layer: int, head: int) -> HeadOperands | None:
    """The operands of one head, in float32; None where they are not all.

    They are not where a number was set by hand in the mask (it is added to a score), or where what is added for the
    positions does not depend on their distance alone.
    """
    record = trace[site_name(kind, layer)]
    if not record.scoring.is_product:
        return None
    if record.bias is not None and record.reason_map is not None:
        mask, reason = (one[head % len(one)] for one in (record.bias, record.reason_map))
        if not _only_blocks(mask, reason.expand_as(mask)):
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
    return HeadOperands(q.cpu().numpy(), k.cpu().numpy(), by_distance)


def _only_blocks(mask: Tensor, reason: Tensor) -> bool:
    """Whether a mask is -inf where there is a reason, and 0 elsewhere."""
    blocks = (slice(start, start + _ROWS) for start in range(0, len(mask), _ROWS))
    return all(
        torch.equal(mask[rows], torch.zeros_like(mask[rows]).masked_fill_(reason[rows] > 0, -torch.inf))
        for rows in blocks
    )


@torch.inference_mode()
def one_head(trace: Trace, kind: Kind, layer: int, head: int) -> OneHead:
    """What `head_maps` says of one head."""
    record = trace[site_name(kind, layer)]
    return OneHead(
        record.pattern(head).float().cpu().numpy(),
        record.scores(head).float().cpu().numpy(),
    )


@torch.inference_mode()
def layer_weights(
    trace: Trace, kind: Kind, layer: int, queries: range | None = None, keys: range | None = None
) -> Float[ndarray, "n_heads n_q n_k"]:
    """The attention weights of one layer's heads; of some queries and keys only, where they are given.

    The weights are those of the whole text: a row of some of its keys sums to less than 1.
    """
    record = trace[site_name(kind, layer)]
    if queries is not None:
        record = record.of_queries(queries.start, queries.stop)
    columns = slice(None) if keys is None else slice(keys.start, keys.stop)
    return torch.stack([record.pattern(head)[:, columns] for head in range(record.n_heads)]).float().cpu().numpy()


def mask_reasons(trace: Trace, kind: Kind) -> UInt8[ndarray, "*n_layers n_q n_k"]:
    """Why cells are blocked (`vizformer.model.Reason`), 0 where they are not: one map, or one a layer where they differ."""
    maps = [trace[site_name(kind, layer)].reason(0) for layer in range(n_layers(trace, kind))]
    if all(one.data_ptr() == maps[0].data_ptr() or torch.equal(one, maps[0]) for one in maps):
        return maps[0].cpu().numpy()
    return np.stack([one.cpu().numpy() for one in maps])


@torch.inference_mode()
def head_overview(
    trace: Trace, kind: Kind, rows: ndarray, columns: ndarray, layers: Sequence[int] | None = None
) -> HeadOverview:
    """The largest weight in every pool of cells, and the measures, for all heads of one kind of attention.

    largest[l, h, i, j] = max of softmax(scores of head h in layer l) over queries rows[i] <= q < rows[i + 1] and keys
    columns[j] <= k < columns[j + 1].  One pool of queries is computed at a time, over the keys that one of them sees, so
    that no more than heads x queries of a pool x keys numbers are held.

    Args:
        trace: of a text of any length.
        kind: which attention.
        rows, columns: where the pools begin, rising from 0; the last one ends with the text.
        layers: the layers that are wanted, all where nothing is said; they take the place of n_layers in the shapes.
    """
    wanted = range(n_layers(trace, kind)) if layers is None else layers
    records = [trace[site_name(kind, layer)] for layer in wanted]
    found = [_of_layer(record, rows.tolist(), columns) for record in records]
    largest, sums = np.stack([one for one, _ in found]), [one.means() for _, one in found]
    entropy, distance, first = np.stack([heads for heads, _ in sums], axis=1).astype(np.float32)
    received = np.stack([one for _, one in sums])
    return HeadOverview(largest, HeadMeasures(entropy, None if kind == "cross" else distance, first, received))


def largest_weights(
    trace: Trace, kind: Kind, rows: ndarray, columns: ndarray
) -> Float[ndarray, "n_layers n_heads rows columns"]:
    """`head_overview` without the measures."""
    return head_overview(trace, kind, rows, columns).largest


def _of_layer(record: AttentionRecord, rows: list[int], columns: ndarray) -> tuple[ndarray, Sums]:
    n_q, n_k = record.q.shape[1], record.k.shape[1]
    keys = record.k.float().repeat_interleave(record.n_heads // record.k.shape[0], dim=0).transpose(1, 2)
    out = np.zeros((record.n_heads, len(rows), len(columns)), dtype=np.float32)
    sums = Sums(record.n_heads, n_k, record.q.device)
    for index, (start, end) in enumerate(zip(rows, [*rows[1:], n_q], strict=True)):
        bias = total_bias(_rows(record.position_bias, start, end), _rows(record.bias, start, end))
        first, last = _seen(_rows(record.bias, start, end), n_k)
        if first == last:
            continue
        scores = torch.bmm(record.q[:, start:end].float(), keys[:, :, first:last]).mul_(record.scale)
        scores = record.scoring.bent(scores)
        if bias is not None:
            scores += bias[:, :, first:last]
        weights = torch.softmax(scores, dim=-1).nan_to_num_(0.0)  # [heads, queries of the pool, keys]
        strongest = np.zeros((record.n_heads, n_k), dtype=np.float32)
        strongest[:, first:last] = weights.amax(dim=1).cpu().numpy()
        out[:, index] = np.maximum.reduceat(strongest, columns, axis=1)
        sums.add(weights, scores, start, first)
    return out, sums


def _rows(bias: Tensor | None, start: int, end: int) -> Tensor | None:
    return bias if bias is None or bias.shape[1] == 1 else bias[:, start:end]


def _seen(mask: Tensor | None, n_k: int) -> tuple[int, int]:
    """The first key that one of the queries sees, and the one after the last."""
    if mask is None:
        return 0, n_k
    seen = (mask > -torch.inf).any(dim=0).any(dim=0).nonzero()
    return (0, 0) if not len(seen) else (int(seen[0]), int(seen[-1]) + 1)
