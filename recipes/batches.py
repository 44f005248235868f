"""Batches of sentences of similar length, so that little of the work is padding."""

import random
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from vizformer.training.loss import IGNORED, PairBatch, RowBatch

Ids = Sequence[int]


class Row(NamedTuple):
    """Tokens of one stack: what goes in, what is to be predicted at each position (or IGNORED), and the segments."""

    ids: Ids
    labels: Ids
    segments: Ids


def row_batches(rows: Sequence[Row], *, tokens_per_batch: int, pad_id: int, seed: int | None) -> Iterator[RowBatch]:
    """All rows once, in batches of at most `tokens_per_batch` tokens, padding included; order as in `pair_batches`."""
    rng = random.Random(seed or 0)
    order = sorted(range(len(rows)), key=lambda i: (len(rows[i].ids), rng.random()))
    batches: list[list[Row]] = [[]]
    for index in order:  # sorted: the row at hand is the longest of its batch
        if batches[-1] and len(rows[index].ids) * (len(batches[-1]) + 1) > tokens_per_batch:
            batches.append([])
        batches[-1].append(rows[index])
    if seed is not None:
        rng.shuffle(batches)
    for batch in batches:
        width = max(len(row.ids) for row in batch)
        lengths = torch.tensor([len(row.ids) for row in batch])
        yield RowBatch(
            _padded([row.ids for row in batch], pad_id),
            _padded([row.labels for row in batch], IGNORED),
            _padded([row.segments for row in batch], 0),
            torch.arange(width) >= lengths[:, None],
        )


def pair_batches(
    pairs: Sequence[tuple[Ids, Ids]], *, tokens_per_batch: int, pad_id: int, seed: int | None
) -> Iterator[PairBatch]:
    """All pairs once, in batches of at most `tokens_per_batch` tokens, padding included.

    (A pair that is longer than the limit has a batch of its own.)  Pairs of like length in both languages come together:
    in bands of two source tokens, within a band by the target, upwards and downwards by turns, so that neighbours are
    alike where a band ends too.  (By the sum of both lengths a quarter of a batch was padding, so it is a tenth.)
    With a seed the order is shuffled: to each length a little noise is added, so that the batches differ from epoch to
    epoch, then the batches are shuffled.  The same seed gives the same order.
    """
    rng = random.Random(seed or 0)  # (Random(None) would differ from run to run)
    noise = 0.0 if seed is None else 1.0

    def place(index: int) -> tuple[int, float, float]:
        source, target = pairs[index]
        band = int(len(source) + noise * rng.random() * 2) // 2
        length = len(target) + noise * rng.random()
        return band, length if band % 2 else -length, rng.random()

    batches: list[list[int]] = [[]]
    widths = (0, 0)
    for index in sorted(range(len(pairs)), key=place):
        lengths = len(pairs[index][0]), len(pairs[index][1])
        wider = max(widths[0], lengths[0]), max(widths[1], lengths[1])
        if batches[-1] and sum(wider) * (len(batches[-1]) + 1) > tokens_per_batch:
            batches.append([])
            wider = lengths
        batches[-1].append(index)
        widths = wider
    if seed is not None:
        rng.shuffle(batches)
    for batch in batches:
        yield PairBatch(_padded([pairs[i][0] for i in batch], pad_id), _padded([pairs[i][1] for i in batch], pad_id))


def _padded(rows: Sequence[Ids], pad_id: int) -> Tensor:
    width = max(map(len, rows))
    return torch.tensor([[*row, *[pad_id] * (width - len(row))] for row in rows])  # [b, n]
