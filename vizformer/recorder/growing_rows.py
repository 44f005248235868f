"""Storage for keys and values. With a cache, a recording stores only the rows that a step added."""

from dataclasses import dataclass

import torch
from torch import Tensor

from vizformer.recorder.torch_calls import copied


class Rows:
    """Rows that grow along one dimension: if a tensor begins with the stored rows, only its further rows are copied."""

    def __init__(self, x: Tensor, dim: int) -> None:
        self.dim, self.n = dim, x.shape[dim]
        self._room = copied(x)

    def first(self, n: int) -> Tensor:
        return self._room.narrow(self.dim, 0, n)

    def continues(self, x: Tensor) -> bool:
        """Whether x begins with exactly these rows."""
        size = list(self._room.shape)
        size[self.dim] = x.shape[self.dim]
        same = list(x.shape) == size and x.dtype == self._room.dtype and x.device == self._room.device
        return same and x.shape[self.dim] >= self.n and torch.equal(x.narrow(self.dim, 0, self.n), self.first(self.n))

    def extend(self, x: Tensor) -> None:
        n = x.shape[self.dim]
        if n == self.n:
            return
        if n > self._room.shape[self.dim]:
            size = list(self._room.shape)
            size[self.dim] = n + n // 2
            with torch.inference_mode(False):
                room = self._room.new_empty(size)
            room.narrow(self.dim, 0, self.n).copy_(self.first(self.n))
            self._room = room
        self._room.narrow(self.dim, self.n, n - self.n).copy_(x.detach().narrow(self.dim, self.n, n - self.n))
        self.n = n

    @property
    def nbytes(self) -> int:
        return self._room.untyped_storage().nbytes()


@dataclass(frozen=True, eq=False)
class Part:
    """The first n of some rows; `added` is the number of those that this run added."""

    rows: Rows
    n: int
    added: int

    @classmethod
    def of(cls, x: Tensor, dim: int, before: "Part | None") -> "Part":
        if before is not None and before.rows.dim == dim and before.n == before.rows.n and before.rows.continues(x):
            before.rows.extend(x)
            return cls(before.rows, x.shape[dim], x.shape[dim] - before.n)
        return cls(Rows(x, dim), x.shape[dim], x.shape[dim])

    @property
    def tensor(self) -> Tensor:
        return self.rows.first(self.n)
