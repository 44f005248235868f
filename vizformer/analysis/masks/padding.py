"""How much of a batch is padding, with sentences as they come and sorted by length.

    waste = 1 - tokens / cells,   cells = sum over batches of (sentences * longest)

Source: Vaswani et al. 2017, section 5.1 (pairs batched together by approximate length).
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Order = Literal["mixed", "length"]
"""In which order sentences are put into batches: drawn at random, or sorted by length."""


@dataclass(frozen=True)
class Batch:
    """Lengths of the sentences that stand side by side, in tokens."""

    lengths: tuple[int, ...]

    @property
    def longest(self) -> int:
        return max(self.lengths)

    @property
    def cells(self) -> int:
        return self.longest * len(self.lengths)

    @property
    def tokens(self) -> int:
        return sum(self.lengths)


@dataclass(frozen=True)
class Batches:
    batches: tuple[Batch, ...]

    @property
    def tokens(self) -> int:
        return sum(batch.tokens for batch in self.batches)

    @property
    def cells(self) -> int:
        return sum(batch.cells for batch in self.batches)

    @property
    def waste(self) -> float:
        """The share of the cells that is padding."""
        return 1 - self.tokens / self.cells


def batches_of(lengths: Sequence[int], size: int, order: Order, seed: int = 0) -> Batches:
    """Sentences of these lengths in batches of `size` each; the last one may be smaller.

    Raises:
        ValueError: nothing to put into a batch.
    """
    if not lengths or size < 1:
        raise ValueError(f"{len(lengths)} sentences cannot be put into batches of {size}")
    ordered = list(lengths)
    random.Random(seed).shuffle(ordered)
    if order == "length":
        ordered.sort()
    return Batches(tuple(Batch(tuple(ordered[i : i + size])) for i in range(0, len(ordered), size)))
