"""How many bytes an object keeps in memory: tensors, arrays, texts, and everything that is reached from it."""

import sys
from collections import deque
from collections.abc import Callable, Collection, Mapping
from enum import Enum
from functools import lru_cache
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

# Others have these too, or would have them anyway.
_FREE = (type(None), bool, type, Enum, ModuleType, FunctionType, BuiltinFunctionType, MethodType)
_FLAT = (int, float, complex, str, bytes, bytearray)
Parts = Callable[[Any], Collection[object]]


def count_bytes(*values: object) -> int:
    """Bytes that are kept alive by `values`; what is reached twice counts once.

    A view counts with all of what it is a view of.  Code, types and enumerations count nothing.
    """
    total, seen, ahead = 0, set[int](), list[object](values)
    while ahead:
        value = ahead.pop()
        counts, parts = _known(type(value))  # type: ignore[arg-type]  # a type can be hashed, which mypy doubts
        if not counts or id(value) in seen:
            continue
        seen.add(id(value))
        total += sys.getsizeof(value, 64)
        if parts is not None:
            ahead.extend(parts(value))
        elif counts is _stored:
            total += _stored(value, seen)
    return total


def _stored(tensor: Any, seen: set[int]) -> int:
    """The bytes of a tensor's storage; 0 on another device, or where another tensor has counted the storage already."""
    if tensor.device.type != "cpu":
        return 0
    storage = tensor.untyped_storage()
    if (where := storage.data_ptr()) in seen:
        return 0
    seen.add(where)
    return int(storage.nbytes())


@lru_cache(maxsize=1024)
def _known(kind: type) -> tuple[object, Parts | None]:
    """Whether objects of a type count, and what they point to, if anything: found once, not for each of thousands."""
    if issubclass(kind, _FREE):
        return None, None
    if issubclass(kind, _FLAT):
        return True, None
    if issubclass(kind, getattr(sys.modules.get("torch"), "Tensor", ())):
        return _stored, None
    if issubclass(kind, Mapping):
        return True, lambda value: [*value.keys(), *value.values()]
    if issubclass(kind, (list, tuple, set, frozenset, deque)):
        return True, lambda value: value
    if issubclass(kind, memoryview):
        return True, lambda value: [value.obj]
    slots = (one.__dict__.get("__slots__", ()) for one in kind.__mro__)
    names = [name for found in slots for name in ((found,) if isinstance(found, str) else found)]
    if hasattr(kind, "__array_interface__"):
        names.append("base")  # of an array that is a view
    if names:
        return True, lambda value: [*getattr(value, "__dict__", {}).values(), *(getattr(value, n, None) for n in names)]
    return True, lambda value: getattr(value, "__dict__", {}).values()
