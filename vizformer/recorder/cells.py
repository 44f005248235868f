"""The cells of a call's operands that given cells of its result depend on: what one head and one query need of each
tensor.

An `Index` gives the positions along each dimension, in order; the cells are their Cartesian product.  If it is not known
how a call computes its result, all cells are taken, so that nothing is left out.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from vizformer.recorder.torch_calls import PRODUCTS, VIEWS, changed, names, product_of

Index = tuple[np.ndarray, ...]

MOVES = VIEWS | names("""
hstack vstack concat concatenate swapdims tile flip roll broadcast_to view_as reshape_as index_select gather
take_along_dim narrow double cpu cuda alias unfold broadcast_tensors tensor_split hsplit moveaxis dropout identity cast
""")
"""Calls that change no number: they only move or copy numbers, or store them in another way."""

_SAME = names("""
clone contiguous to type float half bfloat16 double detach data requires_grad_ type_as dropout cpu cuda alias
""")

CELLWISE = names("""
add radd sub rsub mul rmul multiply div rdiv truediv rtruediv divide neg negative exp exp2 expm1 log log1p sqrt rsqrt
pow rpow square tanh sigmoid relu relu6 gelu silu mish hardswish hardsigmoid hardtanh softplus elu celu selu leaky_relu
logsigmoid clamp clip clamp_min clamp_max abs absolute sin cos masked_fill where maximum minimum erf reciprocal lerp
addcmul addcdiv nan_to_num floor round sign softsign threshold
""")
SUMMED = names("""
sum mean amax amin max min logsumexp norm vector_norm var std all any
""")
_ALONG = frozenset({"softmax", "log_softmax", "cumsum", "cumprod", "normalize", "sort", "argsort"})
_NORMS = frozenset({"layer_norm", "rms_norm"})
_MOST = 2**24  # the most cells that are followed one by one


@dataclass(eq=False)
class Value:
    """A tensor in the recorded calls.

    Attributes:
        of_text: whether it depends on the stream, and so on the text.
        weight: the name of the parameter that it is, or is a view of.
        stream: whether it is the residual stream: the block's input, or a sum with it.
        known: its numbers if they are indices.
    """

    shape: tuple[int, ...]
    dtype: torch.dtype
    made_by: int | None = None  # the number of the call
    of_text: bool = False
    weight: str = ""
    stream: bool = False
    known: Tensor | None = None

    @property
    def everything(self) -> Index:
        return tuple(np.arange(size) for size in self.shape)


def union(a: Index | None, b: Index) -> Index:
    return b if a is None else tuple(np.union1d(one, two) for one, two in zip(a, b, strict=True))


def taken(x: Tensor, at: Index) -> Tensor:
    """The tensor of these cells, with the same number of dimensions."""
    for dim, index in enumerate(at):
        if len(index) != x.shape[dim]:
            narrow = len(index) and int(index[-1]) - int(index[0]) + 1 == len(index)
            x = (
                x.narrow(dim, int(index[0]), len(index))
                if narrow
                else x.index_select(dim, torch.from_numpy(np.asarray(index)).to(x.device))
            )
    return x


def aligned(value: Value, out: Index, size: Sequence[int]) -> Index:
    """The cells of an operand that broadcasts to the result."""
    skip = len(out) - len(value.shape)
    return tuple(
        np.arange(n) if skip + dim < 0 else np.zeros(1, np.int64) if n == 1 != size[skip + dim] else out[skip + dim]
        for dim, n in enumerate(value.shape)
    )


def is_sliced(name: str, args: Any, kwargs: Mapping[str, Any]) -> bool:
    """Whether the call, applied to the operands' cells alone, gives the result's cells."""
    if name in SUMMED or name in _ALONG:
        return bool(_dims(name, args, kwargs, 99))
    return name in CELLWISE or name in PRODUCTS or name in _NORMS or name in ("linear", "addmm")


def widened(name: str, args: Any, kwargs: Mapping[str, Any], cells: Index, shape: Sequence[int]) -> Index:
    """The cells of a result, extended along the dimensions over which the call reduces or normalises, such as a
    softmax's.
    """
    if name in _ALONG:
        dims = _dims(name, args, kwargs, len(shape)) or range(len(shape))
    elif name in _NORMS:
        dims = range(len(shape) - _n_normed(args, kwargs), len(shape))
    else:
        return cells
    return tuple(np.arange(shape[dim]) if dim in dims else at for dim, at in enumerate(cells))


def _n_normed(args: Any, kwargs: Mapping[str, Any]) -> int:
    shape = kwargs.get("normalized_shape", args[1] if len(args) > 1 else ())
    return len(shape) if isinstance(shape, list | tuple | torch.Size) else 1


def needed(
    name: str, func: Callable[..., Any], args: Any, kwargs: Any, outs: Sequence[Value], cells: Mapping[int, Index]
) -> list[tuple[Value, Index]]:
    """The cells of each operand that the given cells of the results depend on.

    Args:
        outs: the call's results; cells: index of a result -> the cells asked for.
    """
    given = list(values((args, kwargs)))
    if name in MOVES:
        found: list[tuple[Value, Index]] = []
        for at, out in cells.items():
            found += _moved(name, func, args, kwargs, at, len(outs) > 1, out) or [
                (one, one.everything) for one in given
            ]
        return found
    out = cells[min(cells)]
    size = outs[min(cells)].shape
    if name in PRODUCTS or name in ("linear", "addmm"):
        product = _factors(name, args, kwargs, outs[0], out)
        if product is not None:
            return product
    if name in CELLWISE and all(_fits(one.shape, size) for one in given):
        return [(one, aligned(one, out, size)) for one in given]
    first = given[0]
    if name in _NORMS and _fits(first.shape, size):
        n = _n_normed(args, kwargs)
        whole = out[: len(out) - n] + first.everything[len(out) - n :]
        return [(one, whole if one.shape == first.shape else one.everything) for one in given]
    if name in _ALONG | SUMMED and len(given) == 1:
        dims = _dims(name, args, kwargs, len(first.shape))
        if dims is not None:
            kept = len(size) == len(first.shape)
            left = iter(out)
            index = []
            for dim, every in enumerate(first.everything):
                if dim in dims:
                    index.append(every)
                    if kept:
                        next(left)
                else:
                    index.append(next(left))
            return [(first, tuple(index))]
    return [(one, one.everything) for one in given]


def _fits(shape: Sequence[int], size: Sequence[int]) -> bool:
    """Whether a shape equals the result's or broadcasts to it."""
    return len(shape) <= len(size) and all(a in (1, b) for a, b in zip(reversed(shape), reversed(size), strict=False))


def values(arguments: Any) -> Iterable[Value]:
    if isinstance(arguments, Value):
        yield arguments
    elif isinstance(arguments, list | tuple):
        for one in arguments:
            yield from values(one)
    elif isinstance(arguments, dict):
        yield from values(list(arguments.values()))
    elif isinstance(arguments, slice):
        yield from values([arguments.start, arguments.stop, arguments.step])


def _dims(name: str, args: Any, kwargs: Mapping[str, Any], n: int) -> set[int] | None:
    """The dimensions that a call works along; None if it works along all of them, or if they are not known."""
    place = 2 if name in ("norm", "vector_norm", "normalize") else 1
    dim = kwargs.get("dim", kwargs.get("axis", args[place] if len(args) > place else None))
    if name == "normalize" and dim is None:
        dim = 1
    if isinstance(dim, bool) or dim is None:
        return None
    if isinstance(dim, int):
        return {dim % n}
    if isinstance(dim, list | tuple) and dim and all(isinstance(one, int) for one in dim):
        return {one % n for one in dim}
    return None


def _factors(name: str, args: Any, kwargs: Any, out: Value, cells: Index) -> list[tuple[Value, Index]] | None:
    """The cells of the factors of a product: the rows and columns of the given cells, whole along the summed dimension."""
    made: list[tuple[Tensor, Value]] = []

    def empty(value: Value) -> Tensor:
        made.append((torch.empty(value.shape, device="meta"), value))
        return made[-1][0]

    filled, named = changed(args, empty, Value), changed(kwargs, empty, Value)
    result = torch.empty(out.shape, device="meta")
    if name == "addmm":
        factors = product_of(
            "matmul", [*filled[1:3], *(named[one] for one in ("mat1", "mat2") if one in named)], {}, result
        )
    else:
        factors = product_of(name, filled, named, result)
    if factors is None or len(factors[4]) != len(cells):
        return None
    a, b, of_a, of_b, of_out = factors
    found = []
    for tensor, value in made:
        labels = of_a if tensor is a else of_b if tensor is b else None
        if labels is None:
            found.append((value, aligned(value, cells, out.shape)))
            continue
        index = []
        for letter, every in zip(labels, value.everything, strict=True):
            at = cells[of_out.index(letter)] if letter in of_out else every
            index.append(np.zeros(1, np.int64) if len(every) == 1 else at)
        found.append((value, tuple(index)))
    return found


def _moved(
    name: str, func: Callable[..., Any], args: Any, kwargs: Any, pick: int, many: bool, cells: Index
) -> list[tuple[Value, Index]] | None:
    """The cells of the operands that a move takes the given cells from; None if there are too many to follow."""
    given = list(values((args, kwargs)))
    if name in _SAME and given and len(given[0].shape) == len(cells):
        return [(given[0], cells)]
    floats = [one for one in given if one.known is None]
    if len(floats) == 1 and len(given) == 1:
        source = torch.empty(floats[0].shape, device="meta")
        try:
            out: Any = func(*changed(args, lambda _: source, Value), **changed(kwargs, lambda _: source, Value))
        except (RuntimeError, TypeError, NotImplementedError):
            out = None
        out = list(out)[pick] if many and out is not None else out
        if isinstance(out, Tensor) and (out is source or out._base is source):
            at = np.full((1,) * len(cells), out.storage_offset(), np.int64)
            for dim, (index, stride) in enumerate(zip(cells, out.stride(), strict=True)):
                at = at + index.reshape([-1 if d == dim else 1 for d in range(len(cells))]) * stride
            return [(floats[0], _dims_of(at, floats[0].shape))]
    if sum(int(np.prod(one.shape)) for one in floats) > _MOST:
        return None
    starts: dict[int, int] = {}
    first = 0

    def numbered(value: Value) -> Tensor:
        nonlocal first
        if value.known is not None:
            return value.known.cpu()
        n = int(np.prod(value.shape))
        starts[id(value)] = first
        first += n
        return torch.arange(first - n, first).reshape(value.shape)

    try:
        out = func(*changed(args, numbered, Value), **changed(kwargs, numbered, Value))
    except (RuntimeError, TypeError, IndexError):
        return None
    out = list(out)[pick] if many else out
    at = taken(out, cells).numpy().reshape(-1)
    found = []
    for value in floats:
        start = starts[id(value)]
        own = at[(at >= start) & (at < start + int(np.prod(value.shape)))] - start
        if len(own):
            found.append((value, _dims_of(own, value.shape)))
    return found


def _dims_of(flat: np.ndarray, shape: Sequence[int]) -> Index:
    if not shape:
        return ()
    return tuple(np.unique(one) for one in np.unravel_index(flat.reshape(-1), tuple(shape)))
