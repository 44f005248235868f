"""Where rooms are kept: in the memory of one server, or in a Redis that several servers share."""

import math
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Generic, Protocol, TypeVar

Kept = TypeVar("Kept")
EVERYTHING = ""  # what listeners are told instead of a code where any room may have changed


class StoreError(ConnectionError):
    """Raised where the store cannot be reached."""


class Store(Protocol[Kept]):
    """The interface of a store: the rooms, the answers to their open questions, and the listeners to changes.

    `get` and `codes` may raise `StoreError`: the store is away, and what is asked for is in nobody's memory.
    """

    @property
    def reached_for(self) -> float:
        """For how many seconds the store has been reachable; 0 while it is not, and this server answers from its memory."""

    def get(self, code: str) -> Kept | None: ...

    def put(self, code: str, room: Kept) -> None: ...

    def drop(self, code: str) -> None:
        """Forgets a room and its answers."""

    def codes(self) -> list[str]: ...

    def answer(self, code: str, voter: str, said: str) -> None:
        """Keeps an answer, in the place of the voter's answer before."""

    def answers(self, code: str) -> Mapping[str, str]:
        """The answer of each voter."""

    def forget_answers(self, code: str) -> None: ...

    def count(self, code: str, here: Counter[str]) -> Counter[str]:
        """Notes what is counted in a room on this server; what is on all that share the store."""

    def tell(self, code: str) -> None:
        """Calls every listener, on every server that shares the store."""

    def listen(self, listener: Callable[[str], None]) -> None: ...

    def point(self, code: str, place: str) -> None:
        """Calls every listener to pointers, on every server that shares the store."""

    def listen_to_pointers(self, listener: Callable[[str, str], None]) -> None: ...


class MemoryStore(Generic[Kept]):
    """Rooms in the memory of this process."""

    def __init__(self) -> None:
        self.rooms: dict[str, Kept] = {}
        self.said: dict[str, dict[str, str]] = {}
        self._listeners: list[Callable[[str], None]] = []
        self._pointed: list[Callable[[str, str], None]] = []

    @property
    def reached_for(self) -> float:
        return math.inf

    def get(self, code: str) -> Kept | None:
        return self.rooms.get(code)

    def put(self, code: str, room: Kept) -> None:
        self.rooms[code] = room

    def drop(self, code: str) -> None:
        self.rooms.pop(code, None)
        self.said.pop(code, None)

    def codes(self) -> list[str]:
        return list(self.rooms)

    def answer(self, code: str, voter: str, said: str) -> None:
        self.said.setdefault(code, {})[voter] = said

    def answers(self, code: str) -> Mapping[str, str]:
        return dict(self.said.get(code, {}))

    def forget_answers(self, code: str) -> None:
        self.said.pop(code, None)

    def count(self, code: str, here: Counter[str]) -> Counter[str]:
        return here

    def tell(self, code: str) -> None:
        for listener in self._listeners:
            listener(code)

    def listen(self, listener: Callable[[str], None]) -> None:
        self._listeners.append(listener)

    def point(self, code: str, place: str) -> None:
        for listener in self._pointed:
            listener(code, place)

    def listen_to_pointers(self, listener: Callable[[str, str], None]) -> None:
        self._pointed.append(listener)
