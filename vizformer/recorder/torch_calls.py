"""Facts about PyTorch's functions that a recorder needs: how they change the dimensions of tensors."""

import types
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


def names(said: str) -> frozenset[str]:
    return frozenset(said.split())


PRODUCTS = frozenset({"matmul", "rmatmul", "bmm", "mm", "einsum", "baddbmm"})
SDPA = F.scaled_dot_product_attention

REDUCERS = names("""
sum mean max amax min amin argmax argmin logsumexp norm std var topk sort linear rms_norm group_norm batch_norm
embedding cross_entropy any all isinf isnan zeros_like ones_like full_like empty_like new_zeros new_ones new_full
rand_like multinomial
""")
"""Calls whose results no longer lead from a product to a map: they reduce a dimension, multiply by weights, compare, or
make a tensor anew.
"""


def ends(name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    """Whether the result of a call no longer leads from a product to a map; that of the elementwise maximum of two
    tensors does.
    """
    if name in ("max", "min") and isinstance(kwargs.get("other", args[1] if len(args) > 1 else None), Tensor):
        return False
    return name in REDUCERS


VIEWS = names("""
t T mT transpose permute swapaxes view reshape expand expand_as unsqueeze squeeze flatten unflatten getitem to type
float half bfloat16 contiguous clone data detach chunk split unbind repeat_interleave type_as repeat narrow select
movedim H stack cat requires_grad_
""")
"""Calls whose result counts as a weight if their input is one."""

SILENT = names("""
shape dtype device size dim ndim is_floating_point numel stride is_contiguous layout requires_grad grad is_cuda
is_complex len item data_ptr storage_offset is_sparse is_nested grad_fn tolist repr is_leaf bool hash is_quantized
is_meta get_device element_size names format int is_cpu is_mkldnn is_inference index
""")
"""Calls that ask about a tensor and make none."""


def _opened(function: Callable[..., Any]) -> Callable[..., Any]:
    """A copy of one of torch's functions that does not dispatch as a whole, so that the mode sees the calls inside it."""

    def no(*_args: object, **_kwargs: object) -> bool:
        return False

    names = ("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic")
    scope = {**function.__globals__, **dict.fromkeys(names, no)}
    copy = types.FunctionType(function.__code__, scope, function.__name__, function.__defaults__, function.__closure__)
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy


OPENED: dict[Callable[..., Any], Callable[..., Any]] = {
    F.multi_head_attention_forward: _opened(F.multi_head_attention_forward)
}


@lru_cache(4096)
def name_of(func: Callable[..., Any]) -> str:
    """ "matmul" of torch.matmul and Tensor.__matmul__, "shape" of the getter of Tensor.shape, "add" of Tensor.__iadd__."""
    name = getattr(func, "__name__", str(func))
    if name in ("__get__", "__set__"):
        name = getattr(getattr(func, "__self__", None), "__name__", "get")
    name = name.strip("_")
    return name[1:] if name in ("iadd", "isub", "imul", "itruediv", "idiv") else name


def works_in_place(func: Callable[..., Any]) -> bool:
    name = getattr(func, "__name__", "")
    return name == "__setitem__" or name.startswith("__i") or (name.endswith("_") and not name.endswith("__"))


def changed(value: Any, change: Callable[[Any], Any], kinds: Any = Tensor) -> Any:
    """The arguments with each tensor, or each object of `kinds`, replaced by `change` of it."""
    if isinstance(value, kinds):
        return change(value)
    if isinstance(value, list | tuple) and not isinstance(value, torch.Size):
        made = [changed(one, change, kinds) for one in value]
        return type(value)(*made) if hasattr(value, "_fields") else type(value)(made)
    if isinstance(value, dict):
        return {name: changed(one, change, kinds) for name, one in value.items()}
    if isinstance(value, slice):
        return slice(*(changed(one, change, kinds) for one in (value.start, value.stop, value.step)))
    return value


def copied(x: Tensor) -> Tensor:
    """A copy that can be written to and differentiated, even of a tensor made under `torch.inference_mode`."""
    with torch.inference_mode(False):
        return x.detach().clone()


def tensors(value: Any, depth: int = 5) -> Iterator[Tensor]:
    """The tensors in arguments or results, also inside objects that hold some (such as a cache of keys and values)."""
    if isinstance(value, Tensor):
        yield value
    elif depth and isinstance(value, list | tuple | set):
        for one in value:
            yield from tensors(one, depth - 1)
    elif depth and isinstance(value, dict):
        for one in value.values():
            yield from tensors(one, depth - 1)
    elif isinstance(value, slice):
        yield from tensors((value.start, value.stop, value.step), 1)
    elif depth and not isinstance(value, type | torch.nn.Module) and hasattr(value, "__dict__"):
        yield from tensors(vars(value), depth - 1)


_PLAIN = frozenset({int, float, bool, str, type(None), torch.dtype, torch.device, torch.Size, type(...)})


def inputs(args: Sequence[Any], kwargs: dict[str, Any]) -> list[Tensor]:
    """The tensors in the arguments of a call, also those in lists; the fast way for what runs at every call."""
    found: list[Tensor] = []
    for x in (*args, *kwargs.values()) if kwargs else args:
        if isinstance(x, Tensor):
            found.append(x)
        elif type(x) not in _PLAIN:
            found += tensors(x, 1)
    return found


Factors = tuple[Tensor, Tensor, str, str, str]


def product_of(name: str, args: Sequence[Any], kwargs: dict[str, Any], out: Tensor) -> Factors | None:
    """(a, b, labels of a, of b, of the result) of one of PRODUCTS or of `linear`, with one letter per dimension; None if its
    factors are not two tensors of two dimensions or more.
    """
    if name == "einsum":
        return _einsum(args)
    pair = list(args)
    if name == "baddbmm":
        a = kwargs.get("batch1", pair[1] if len(pair) > 1 else None)
        b = kwargs.get("batch2", pair[2] if len(pair) > 2 else None)
    else:
        pair += [kwargs[one] for one in ("other", "mat2", "weight") if one in kwargs]
        a, b = (pair[1], pair[0]) if name == "rmatmul" else (pair[0], pair[1])
    if not (isinstance(a, Tensor) and isinstance(b, Tensor)) or min(a.dim(), b.dim()) < 2 or out.dim() > 10:
        return None
    lead = "ABCDEFGH"[: out.dim() - 2]
    ends = ("xy", "zy", "xz") if name == "linear" else ("xy", "yz", "xz")
    return a, b, lead[len(lead) - a.dim() + 2 :] + ends[0], lead[len(lead) - b.dim() + 2 :] + ends[1], lead + ends[2]


def _einsum(args: Sequence[Any]) -> Factors | None:
    equation, factors = args[0], args[1:]
    if len(factors) == 1 and isinstance(factors[0], list | tuple):
        factors = factors[0]
    if not isinstance(equation, str) or len(factors) != 2:
        return None
    equation = equation.replace(" ", "")
    left, arrow, right = equation.partition("->")
    a, b = left.split(",")
    if not arrow:
        joined = left.replace(",", "").replace("...", "")
        right = ("..." if "..." in left else "") + "".join(sorted(c for c in set(joined) if joined.count(c) == 1))
    sizes = [x.dim() - len(labels.replace("...", "")) for x, labels in zip(factors, (a, b), strict=True)]
    dots = max((size for size, labels in zip(sizes, (a, b), strict=True) if "..." in labels), default=0)
    letters = "".join([c for c in "ZYXWVUTSRQ" if c not in equation][:dots])
    first, second = (
        labels.replace("...", letters[dots - size :] if "..." in labels else "")
        for labels, size in zip((a, b), sizes, strict=True)
    )
    return factors[0], factors[1], first, second, right.replace("...", letters)
