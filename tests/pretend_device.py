"""A device that is not there: tensors "on" it hold real numbers, but they meet others as on a GPU, not at all.

With `device()` active, `torch.device(NAME)` can be used like "cuda": tensors made or brought there say so, an operation
that mixes them with the processor's raises (single numbers apart, as on a GPU), and `.numpy()` needs `.cpu()` first.
What runs under it and gives the numbers of the processor would run on a GPU: each tensor was made where it is needed.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import local
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

NAME = "xla"  # known to PyTorch by name, in builds for the processor too; CUDA would be looked for
_DEVICE = torch.device(NAME, 0)
# One operation each: the first would look for the device's kernel, the others reshape their result in place.
_WHOLE = {
    torch.nn.functional.scaled_dot_product_attention,
    torch.nn.functional.linear,
    torch.matmul,
    torch.Tensor.matmul,
    torch.Tensor.__matmul__,
    torch.Tensor.__rmatmul__,
}


class _Meant(local):
    meta = False


_meant = _Meant()  # whether the code asked for "meta" itself


class There(torch.Tensor):
    """A tensor that says it is on the device; its numbers are in `here`."""

    here: torch.Tensor

    @staticmethod
    def __new__(cls, here: torch.Tensor) -> "There":
        made: There = torch.Tensor._make_wrapper_subclass(
            cls,
            here.shape,
            strides=here.stride(),
            storage_offset=here.storage_offset(),
            dtype=here.dtype,
            device=torch.device("meta"),
            requires_grad=False,
        )  # "meta" for PyTorch's own machinery, which knows no other device without a driver
        made.here = here
        return made

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is torch.Tensor.numpy:
            raise TypeError(f"can't convert {NAME}:0 device type tensor to numpy. Use Tensor.cpu() first.")
        if func == torch.Tensor.device.__get__:
            return _DEVICE
        if func == torch.Tensor.is_meta.__get__:  # type: ignore[attr-defined]
            return False
        if func is torch.Tensor.tolist:
            return args[0].here.tolist()
        if func is torch.Tensor.__repr__:
            return f"There({args[0].here!r})"
        if func is torch.Tensor.__getitem__ and isinstance(args[1], list):
            args = (args[0], torch.tensor(args[1]))  # PyTorch would make an index on "meta" of it, with no numbers
        if func in _WHOLE:
            return _run(func, args, kwargs)
        # (tensors of inference mode cannot be wrapped and viewed; nothing here asks for gradients)
        with torch._C.DisableTorchFunctionSubclass(), torch.inference_mode(False), torch.no_grad():
            return func(*args, **kwargs)

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return _run(func, args, kwargs or {})


def _run(func: Any, args: Any, kwargs: Any) -> Any:
    tensors = [value for value in tree_flatten((args, kwargs))[0] if isinstance(value, torch.Tensor)]
    there = [value for value in tensors if isinstance(value, There)]
    asked = kwargs.get("device")
    if asked is not None and torch.device(asked).type == "meta" and _meant.meta:
        return func(*args, **kwargs)
    # ("meta", where nobody said it, is what PyTorch's own machinery takes for the device of what is there)
    wanted = bool(there) if asked is None else torch.device(asked).type in (NAME, "meta")
    moves = func in (torch.ops.aten._to_copy.default, torch.ops.aten.copy_.default)
    if there and not moves:
        strays = [value for value in tensors if not isinstance(value, There) and value.dim() > 0]
        if strays and not _indexes(func, args, strays):
            raise RuntimeError(
                f"{func}: expected all tensors to be on the same device, but found {NAME}:0 and cpu "
                f"(a tensor {list(strays[0].shape)})"
            )
    if asked is not None:
        kwargs = {**kwargs, "device": torch.device("cpu")}
    plain_args, plain_kwargs = tree_map(_bare, (args, kwargs))
    found = func(*plain_args, **plain_kwargs)
    name = getattr(func, "__name__", "")
    if name.partition(".")[0].endswith("_") and not name.startswith("_") and isinstance(args[0], torch.Tensor):
        return args[0]  # in place
    return (
        tree_map(lambda value: There(value) if isinstance(value, torch.Tensor) else value, found) if wanted else found
    )


def _indexes(func: Any, args: Any, strays: list[torch.Tensor]) -> bool:
    """Indices may be the processor's, on a GPU too: PyTorch brings them over; what is put there may not."""
    if func not in (torch.ops.aten.index.Tensor, torch.ops.aten.index_put_.default, torch.ops.aten.index_put.default):
        return False
    indices = [index for index in args[1] if index is not None]
    return isinstance(args[0], There) and all(any(stray is index for index in indices) for stray in strays)


def _bare(value: Any) -> Any:
    return value.here if isinstance(value, There) else value


class _Mode(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(func, args, kwargs or {})


class _Constructors(TorchFunctionMode):
    """`torch.tensor` fills its tensor where no dispatch mode sees it."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        asked = kwargs.get("device")
        kind = None if asked is None else torch.device(asked).type
        if func in (torch.tensor, torch.as_tensor) and kind == NAME:
            return There(func(*args, **{**kwargs, "device": "cpu"}))
        before, _meant.meta = _meant.meta, _meant.meta or kind == "meta"
        try:
            with torch.inference_mode(False), torch.no_grad():
                return func(*args, **kwargs)
        finally:
            _meant.meta = before


@contextmanager
def device() -> Iterator[torch.device]:
    """The device, while it is pretended."""
    with _Mode(), _Constructors():
        yield _DEVICE
