"""The calls from the product of queries and keys to the map, which run again when a map is asked for.

No map is kept.  A `Node` is a tensor between the two: the call that made it, with earlier nodes in place of their
tensors and copies of all others (masks, biases), one copy for all calls that were handed the same tensor.
"""

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

from vizformer.recorder.torch_calls import changed, copied, works_in_place


# Storage for keys and values. With a cache, a recording stores only the rows that a step added.
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


@dataclass(eq=False)
class Node:
    """A tensor between the product q k^T and the product with v.

    Attributes:
        normal: "softmax", "exp", "relu" or "sigmoid" once one of these ran, None before.
        sides: "q", "k" or "batch" for each dimension; None if a reshape lost it.
        product: if this is a product itself, its factors a and b, their labels and those of the result.
        source: the stacks that it depends on, as a bit set.
        stale: whether its numbers were changed through another view, and read after that.
    """

    func: Callable[..., Any]
    name: str
    args: Any
    kwargs: Any
    shape: tuple[int, ...]
    before: tuple["Node", ...]
    source: int
    normal: str | None = None
    pick: int | None = None  # the index among several outputs
    sides: tuple[str, ...] | None = None
    product: "Product | None" = None
    autocast: tuple[str, torch.dtype] | None = None
    stale: bool = False


@dataclass(eq=False)
class Product:
    a: Any
    b: Any
    of_a: str
    of_b: str
    of_out: str
    versions: tuple[tuple[int, int], tuple[int, int]]  # the versions of a and b when the product was made


@dataclass(frozen=True, eq=False)
class Held:
    """A copied tensor in the arguments of a node."""

    tensor: Tensor = field(repr=False)


_IN_NODES = (Node, Part, Held)


def replay(node: Node, dtype: torch.dtype | None = None, given: Mapping[Node, Tensor] | None = None) -> Tensor:
    """The tensor of a node, recomputed by the recorded calls.

    Args:
        dtype: the dtype of the computation; None: as it ran.
        given: tensors that replace those of some nodes.
    """
    found: dict[Node, Tensor] = dict(given or {})

    def cast(x: Tensor) -> Tensor:
        return x.to(dtype) if dtype is not None and x.is_floating_point() else x

    def wider(value: Any) -> Any:
        return dtype if dtype is not None and isinstance(value, torch.dtype) and value.is_floating_point else value

    def run(one: Node) -> Tensor:
        def fill(x: Any) -> Tensor:
            return found[x] if isinstance(x, Node) else cast(x.tensor)

        args = tuple(wider(value) for value in changed(one.args, fill, _IN_NODES))
        kwargs = {name: wider(value) for name, value in changed(one.kwargs, fill, _IN_NODES).items()}
        if dtype is not None and one.name in ("float", "half", "bfloat16", "double", "type_as"):
            out: Any = args[0]
        else:
            if works_in_place(one.func):
                args = (args[0].clone(), *args[1:])
            device, half = one.autocast or ("cpu", torch.bfloat16)
            with torch.autocast(device, dtype=half) if one.autocast and dtype is None else nullcontext():
                out = one.func(*args, **kwargs)
            out = args[0] if one.name == "setitem" else out
        return out if one.pick is None or isinstance(out, Tensor) else out[one.pick]  # type: ignore[no-any-return]

    with torch.no_grad():
        for one in in_order(node, found):
            found[one] = run(one)
    return found[node]


def in_order(node: Node, without: Mapping[Node, Tensor] = MappingProxyType({})) -> list[Node]:
    """The ancestors of a node and the node itself, each after those that it depends on."""
    done: dict[Node, None] = {}
    todo = [(node, False)]
    while todo:
        one, ready = todo.pop()
        if one in done or one in without:
            continue
        if ready:
            done[one] = None
        else:
            todo += [(one, True), *((parent, False) for parent in one.before)]
    return list(done)


def products(node: Node) -> list[Node]:
    """The products that a map depends on, nearest first."""
    found, todo, seen = [], [node], set()
    while todo:
        one = todo.pop(0)
        if one not in seen:
            seen.add(one)
            found += [one] if one.product else []
            todo += one.before
    return found


def sides_after(name: str, args: Any, before: tuple[Node, ...], out: Tensor) -> tuple[str, ...] | None:
    """The role of each dimension after a call; None if it is not known."""
    known = next((one for one in before if one.sides), None)
    if known is None or known.sides is None:
        return None
    sides, shape = known.sides, known.shape
    if name in ("transpose", "swapaxes") and len(args) == 3:
        turned = list(sides)
        turned[args[1]], turned[args[2]] = turned[args[2]], turned[args[1]]
        return tuple(turned)
    if name == "permute":
        dims = args[1] if isinstance(args[1], tuple | list) else args[1:]
        return tuple(sides[dim] for dim in dims) if len(dims) == len(sides) else None
    if name in ("T", "t", "mT", "H"):
        return (*sides[:-2], sides[-1], sides[-2]) if len(sides) == 2 or name == "mT" else None
    if name in ("gather", "index_select", "as_strided", "roll", "take_along_dim", "movedim"):
        return None
    if out.dim() == len(sides) and (tuple(out.shape) == shape or name not in ("view", "reshape", "pad")):
        return sides
    if tuple(out.shape[-2:]) == shape[-2:] and {"q", "k"} == set(sides[-2:]):
        return ("batch",) * (out.dim() - 2) + sides[-2:]
    return None
