"""A cache of computed results that all readers share, bounded by bytes.

    @cached
    def trace(model: str, text: str) -> "Trace": ...

Keys are names, texts and options, never an array.  What a cached function returns is shared: read only.

All functions of the process share one budget, half of it for traces; the results used least recently are dropped first.
Concurrent requests for one key share a computation.  Streamlit's own caches have no such budget, and any browser can tell
Streamlit to empty them (its message `clear_cache`); no browser reaches this one.
"""

import functools
import inspect
import os
import sys
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, Generic, ParamSpec, TypeVar, cast, overload

from vizformer.errors import VizformerError
from vizformer.web.turns import watching

VARIABLE = "VIZFORMER_CACHE_BYTES"
USUAL = 320 * 2**20  # bytes: with what torch and Streamlit take, a server then fits into a machine of 2 GB
ENTRY = 512  # bytes that an entry costs beside its key and its value

P = ParamSpec("P")
R = TypeVar("R")

# Others have these too, or would have them anyway.
_FREE = (type(None), bool, type, Enum, ModuleType, FunctionType, BuiltinFunctionType, MethodType)
_FLAT = (int, float, complex, str, bytes, bytearray)
Parts = Callable[[Any], Collection[object]]


def limit() -> int:
    """Bytes that may be kept of what was computed, and once more of weights."""
    given = os.environ.get(VARIABLE, "").strip()
    return int(given) if given.isascii() and given.isdigit() and len(given) < 20 else USUAL


@dataclass
class _Entry:
    value: Any
    error: VizformerError | None
    bytes: int


@dataclass
class _Running:
    thread: int
    done: threading.Event = field(default_factory=threading.Event)
    entry: _Entry | None = None


class Cache:
    """Values by key.  Safe to use from many threads.

    `spares`: says of a key that its value is kept, as the newest one is, even where they are above the budget.
    """

    def __init__(
        self,
        limit: Callable[[], int] = limit,
        most: int | None = None,
        spares: Callable[[Any], bool] = lambda key: False,
    ) -> None:
        self._limit, self._most, self._spares = limit, most, spares
        self._lock = threading.Lock()
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()  # the one asked for last is the last
        self._running: dict[Hashable, _Running] = {}
        self._ended = deque[Hashable]()  # keys whose values are to be dropped as soon as the lock is free
        self._bytes = 0

    @property
    def bytes(self) -> int:
        """The number of bytes that the cache holds."""
        return self._bytes

    def __len__(self) -> int:
        return len(self._entries)

    def get(
        self,
        key: Hashable,
        compute: Callable[[], R],
        *,
        refusals: bool = False,
        weigh: Callable[[R], int] | None = None,
    ) -> R:
        """The value of `key`: from the cache, or computed now; concurrent requests wait for the first one.

        Args:
            refusals: a `VizformerError` that is not a passing one is kept too, and raised again.
            weigh: says how many bytes a value takes (`count_bytes` if not given).
        """
        while True:
            with self._lock:
                self._drop_ended()
                entry = self._entries.get(key)
                if entry is not None:
                    self._entries.move_to_end(key)
                running = self._running.get(key)
                first = entry is None and running is None
                if first:
                    running = self._running[key] = _Running(threading.get_ident())
            if entry is None and running is not None:
                if first:
                    return self._compute(key, compute, running, refusals, weigh)
                if running.thread == threading.get_ident():
                    raise RuntimeError(f"{key!r} is asked for while it is computed")
                with watching():
                    running.done.wait()
                entry = running.entry
            if entry is not None:
                if entry.error is not None:
                    raise _copy(entry.error)
                return cast(R, entry.value)
            # Whoever computed it came to no end: now somebody else tries.

    def holds(self, key: Hashable) -> bool:
        """Whether the value of `key`, or why there is none, is kept now."""
        with self._lock:
            return key in self._entries

    def weigh_again(self, key: Hashable, weigh: Callable[[Any], int]) -> None:
        """Counts the bytes anew of a value that has grown since it was kept; others go where there is no room left."""
        with self._lock:
            entry = self._entries.pop(key, None)
            if entry is not None:
                self._bytes -= entry.bytes
                entry.bytes = ENTRY + count_bytes(key) + weigh(entry.value)
                self._keep(key, entry)

    def forget(self, belongs: Callable[[Any], bool] = lambda key: True) -> None:
        """Drops the values of the keys that `belongs` chooses."""
        with self._lock:
            for key in [key for key in self._entries if belongs(key)]:
                self._bytes -= self._entries.pop(key).bytes

    def forget_at_the_end(self, key: Hashable) -> None:
        """Drops the value of `key` now or at the next request: for a `weakref.finalize`, which never waits for the lock.

        The garbage collector may call it in a thread that holds the lock: that thread would wait for itself.
        """
        self._ended.append(key)
        if self._lock.acquire(blocking=False):
            try:
                self._drop_ended()
            finally:
                self._lock.release()

    def _drop_ended(self) -> None:
        while self._ended:
            entry = self._entries.pop(self._ended.popleft(), None)
            self._bytes -= 0 if entry is None else entry.bytes

    def _compute(
        self,
        key: Hashable,
        compute: Callable[[], R],
        running: _Running,
        refusals: bool,
        weigh: Callable[[R], int] | None,
    ) -> R:
        try:
            try:
                value = compute()
                weight = count_bytes(key, value) if weigh is None else count_bytes(key) + weigh(value)
                running.entry = _Entry(value, None, ENTRY + weight)
            except VizformerError as error:
                if not refusals or error.passing:
                    raise
                running.entry = _Entry(None, _copy(error), ENTRY + count_bytes(key, error.message))
                raise
            return value
        finally:
            with self._lock:
                del self._running[key]
                if running.entry is not None:
                    self._keep(key, running.entry)
            running.done.set()

    def _keep(self, key: Hashable, entry: _Entry) -> None:
        """The newest value is kept even where it alone is above the budget: its reader needs it several times."""
        self._entries[key] = entry
        self._bytes += entry.bytes
        allowed, most, dropped = self._limit(), self._most or len(self._entries), list[Hashable]()
        for old, one in self._entries.items():  # (as far as needed: a list of all keys would be made for every value)
            if old == key or (self._bytes <= allowed and len(self._entries) - len(dropped) <= most):
                break
            if not self._spares(old):
                self._bytes -= one.bytes
                dropped.append(old)
        for old in dropped:
            del self._entries[old]


def _copy(error: VizformerError) -> VizformerError:
    """A copy of the error without its traceback, whose frames would keep a whole run of a page alive."""
    made = type(error).__new__(type(error), *error.args)
    made.__dict__.update(error.__dict__)
    return made


RESULTS = Cache(lambda: limit() // 2)
TRACES = Cache(lambda: limit() // 2)
"""Half of the room is for traces: that of a long text takes it all, and must not be pushed out by what is made of it."""


class Cached(Generic[P, R]):
    def __init__(
        self,
        function: Callable[P, R],
        cache: Cache = RESULTS,
        refusals: Callable[..., bool] | None = None,
        weigh: Callable[[R], int] | None = None,
    ) -> None:
        functools.update_wrapper(self, function)
        self._function, self._cache, self._refusals, self._weigh = function, cache, refusals, weigh
        self._name = f"{function.__module__}.{function.__qualname__}"
        self._signature = inspect.signature(function)
        plain = all(one.kind is one.POSITIONAL_OR_KEYWORD for one in self._signature.parameters.values())
        # So many arguments in order are the key as they are.
        self._n = len(self._signature.parameters) if plain else None

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        key = self._key(*args, **kwargs)
        refusals = self._refusals is not None and self._refusals(*args, **kwargs)
        return self._cache.get(key, lambda: self._function(*args, **kwargs), refusals=refusals, weigh=self._weigh)

    def _key(self, *args: P.args, **kwargs: P.kwargs) -> tuple[Any, ...]:
        if len(args) == self._n and not kwargs:
            return (self._name, *args)
        bound = self._signature.bind(*args, **kwargs)  # however it is called, the same call has the same key
        bound.apply_defaults()
        return (self._name, *bound.arguments.values())

    def holds(self, *args: P.args, **kwargs: P.kwargs) -> bool:
        """Whether the result of this call is kept now."""
        return self._cache.holds(self._key(*args, **kwargs))

    def weigh_again(self, *args: P.args, **kwargs: P.kwargs) -> None:
        """Counts the bytes anew of the result of this call, if it is kept (see `Cache.weigh_again`)."""
        self._cache.weigh_again(self._key(*args, **kwargs), self._weigh or count_bytes)

    def clear(self) -> None:
        """Drops what was kept of this function."""
        self._cache.forget(lambda key: key[0] == self._name)


@overload
def cached(function: Callable[P, R], /) -> Cached[P, R]: ...


@overload
def cached(
    *, cache: Cache = ..., refusals: Callable[..., bool] | None = ..., weigh: Callable[[Any], int] | None = ...
) -> Callable[[Callable[P, R]], Cached[P, R]]: ...


def cached(
    function: Callable[P, R] | None = None,
    /,
    *,
    cache: Cache = RESULTS,
    refusals: Callable[..., bool] | None = None,
    weigh: Callable[[Any], int] | None = None,
) -> Cached[P, R] | Callable[[Callable[P, R]], Cached[P, R]]:
    """Keeps what a function returns, for as long as there is room.

    Args:
        refusals: asked with the function's arguments whether a `VizformerError` is to be kept as well.
        weigh: says how many bytes a result takes (`count_bytes` if not given).
    """
    if function is None:
        return lambda function: Cached(function, cache, refusals, weigh)
    return Cached(function, cache, refusals, weigh)


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
