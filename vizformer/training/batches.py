"""Batches of sentences of similar length, so that little of the work is padding."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

Ids = Sequence[int]


@dataclass(frozen=True)
class PairBatch:
    """source [b, n] with its end mark; target [b, m] begins with the start mark and ends with the end mark."""

    source: Tensor
    target: Tensor

    def to(self, device: torch.device) -> "PairBatch":
        return PairBatch(self.source.to(device), self.target.to(device))


def pair_batches(
    pairs: Sequence[tuple[Ids, Ids]], *, tokens_per_batch: int, pad_id: int, seed: int | None
) -> Iterator[PairBatch]:
    """All pairs once, in batches in which the longest pair times the number of pairs is at most `tokens_per_batch`.

    (Source and target are each padded to their own longest, so that the tensors hold somewhat more; a pair that is
    longer than the limit has a batch of its own.)
    With a seed the order is shuffled: sentences are sorted by length plus a little noise, so that the batches differ
    from epoch to epoch, then the batches are shuffled.  The same seed gives the same order.
    """
    rng = random.Random(seed or 0)  # (Random(None) would differ from run to run)
    noise = 0.0 if seed is None else 1.0
    keys = [(len(source) + noise * rng.random() * 2, len(target) + noise * rng.random()) for source, target in pairs]
    order = sorted(range(len(pairs)), key=lambda i: (keys[i][0] + keys[i][1], rng.random()))
    batches: list[list[int]] = [[]]
    width = 0
    for index in order:
        source, target = pairs[index]
        new_width = max(width, len(source) + len(target))
        if batches[-1] and new_width * (len(batches[-1]) + 1) > tokens_per_batch:
            batches.append([])
            new_width = len(source) + len(target)
        batches[-1].append(index)
        width = new_width
    if seed is not None:
        rng.shuffle(batches)
    for batch in batches:
        yield PairBatch(
            _padded([pairs[i][0] for i in batch], pad_id), _padded([pairs[i][1] for i in batch], pad_id)
        )  # fmt: skip


def _padded(rows: Sequence[Ids], pad_id: int) -> Tensor:
    width = max(map(len, rows))
    return torch.tensor([[*row, *[pad_id] * (width - len(row))] for row in rows])  # [b, n]
