"""How many bytes an object keeps in memory: tensors, arrays, texts, and everything that is reached from it."""

import sys
from collections import deque
from collections.abc import Mapping
from enum import Enum
from functools import lru_cache
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

# Others have these too, or would have them anyway.
_FREE = (type(None), bool, type, Enum, ModuleType, FunctionType, BuiltinFunctionType, MethodType)
_FLAT = (int, float, complex, str, bytes, bytearray)


def count_bytes(*values: object) -> int:
    """Bytes that are kept alive by `values`; what is reached twice counts once.

    A view counts with all of what it is a view of.  Code, types and enumerations count nothing.
    """
    total, seen, ahead = 0, set[int](), deque[object](values)
    while ahead:
        value = ahead.pop()
        if isinstance(value, _FREE) or id(value) in seen:
            continue
        seen.add(id(value))
        total += _own(value, seen)
        if not isinstance(value, _FLAT):
            ahead.extend(_parts(value))
    return total


def _own(value: Any, seen: set[int]) -> int:
    """What the object itself takes, without what it points to."""
    own = sys.getsizeof(value, 64)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        if value.device.type != "cpu":
            return own  # (it lies in the memory of another device)
        storage = value.untyped_storage()
        if storage.data_ptr() in seen:
            return own
        seen.add(storage.data_ptr())
        return own + int(storage.nbytes())
    return own


def _parts(value: Any) -> list[object]:
    """What an object points to."""
    if isinstance(value, Mapping):
        return [*value.keys(), *value.values()]
    if isinstance(value, (list, tuple, set, frozenset, deque)):
        return list(value)
    if isinstance(value, memoryview):
        return [value.obj]
    parts: list[object] = []
    base = getattr(value, "base", None)  # of an array that is a view
    if base is not None and hasattr(value, "__array_interface__"):
        parts.append(base)
    parts.extend(getattr(value, "__dict__", {}).values())
    for name in _slots(type(value)):  # type: ignore[arg-type]  # a type can be hashed, which mypy doubts of type[Any]
        if (part := getattr(value, name, None)) is not None:
            parts.append(part)
    return parts


@lru_cache(maxsize=1024)
def _slots(kind: type) -> tuple[str, ...]:
    """The names of a type's slots; asked for each of thousands of tokens."""
    found = (one.__dict__.get("__slots__", ()) for one in kind.__mro__)
    return tuple(name for slots in found for name in ((slots,) if isinstance(slots, str) else slots))
