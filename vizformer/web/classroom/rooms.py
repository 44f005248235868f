"""Rooms: where a teacher is, for those who know the room's code.

    rooms = Rooms(MemoryStore(), is_there=...)
    code, secret = rooms.open(session)
    rooms.move(code, secret, "qkv", {"head": "3"})      # by the teacher, who alone has the secret
    rooms.look(code)                                    # by anybody who has the code: Place("qkv", {"head": "3"}, 1)

A room holds the teacher's page and link, and nothing of those who look.  It ends when the teacher says so, when the teacher
has been away for `AWAY` seconds, and after `LONGEST` seconds in any case.
"""

import hmac
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"  # none that is taken for another one on a blackboard
LENGTH = 6  # 32**6 codes: a thousand million
LONGEST = 4 * 3600.0  # seconds
AWAY = 60.0  # seconds without the teacher: a reload of the network, not a break
MOST = 100  # rooms at a time
MOST_CHARACTERS = 12_000  # of a link; what is longer is not passed on


class NoRoomError(LookupError):
    """There is no room of this code, or it is not this teacher's."""


@dataclass(frozen=True)
class Place:
    """Where a teacher is.

    Attributes:
        page: as its address calls it.
        parameters: of its link.
        version: grows with every move.
    """

    page: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)
    version: int = 0


@dataclass(frozen=True)
class Room:
    """A room as it is kept.

    Attributes:
        secret: what the teacher's session alone knows.
        teacher: the session that opened it.
        opened: by the clock, seconds.
        missed: since when the teacher is away; None while there.
    """

    secret: str
    teacher: str
    opened: float
    place: Place = Place()
    missed: float | None = None


class Store(Protocol):
    """Where rooms are kept: the memory of this server, or later something that several servers share."""

    def get(self, code: str) -> Room | None: ...

    def put(self, code: str, room: Room) -> None: ...

    def drop(self, code: str) -> None: ...

    def codes(self) -> list[str]: ...


class MemoryStore(dict[str, Room]):
    """Rooms in the memory of this process."""

    def put(self, code: str, room: Room) -> None:
        self[code] = room

    def drop(self, code: str) -> None:
        self.pop(code, None)

    def codes(self) -> list[str]:
        return list(self)


class Rooms:
    """All rooms of a server.

    Args:
        store: where they are kept.
        is_there: whether a session still has its browser.
        clock: seconds that only grow.
    """

    def __init__(
        self,
        store: Store,
        is_there: Callable[[str], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store, self._is_there, self._clock = store, is_there, clock
        self._lock = threading.Lock()
        self._listeners: list[Callable[[str], None]] = []

    def open(self, teacher: str) -> tuple[str, str]:
        """A new room: its code and the teacher's secret.

        Raises:
            NoRoomError: there are too many.
        """
        with self._lock:
            for code in self._store.codes():
                self._fresh(code)
            if len(self._store.codes()) >= MOST:
                raise NoRoomError("there are too many rooms")
            code = "".join(secrets.choice(LETTERS) for _ in range(LENGTH))
            while self._store.get(code) is not None:
                code = "".join(secrets.choice(LETTERS) for _ in range(LENGTH))
            secret = secrets.token_urlsafe(24)
            self._store.put(code, Room(secret, teacher, self._clock()))
        return code, secret

    def move(self, code: str, secret: str, page: str, parameters: Mapping[str, str]) -> None:
        """Takes the room to a place; where it is there already, nothing happens.

        Raises:
            NoRoomError: the room is over, or the secret is not its own.
        """
        with self._lock:
            room = self._own(code, secret)
            wanted = Place(page, dict(parameters), room.place.version + 1)
            same = (page, wanted.parameters) == (room.place.page, room.place.parameters) and room.place.version > 0
            if same or sum(len(name) + len(value) for name, value in parameters.items()) > MOST_CHARACTERS:
                return
            self._store.put(code, replace(room, place=wanted))
        self._tell(code)

    def close(self, code: str, secret: str) -> None:
        """Ends a room.

        Raises:
            NoRoomError: the room is over, or the secret is not its own.
        """
        with self._lock:
            self._own(code, secret)
            self._store.drop(code)
        self._tell(code)

    def look(self, code: str) -> Place:
        """Where the teacher is.

        Raises:
            NoRoomError: there is no such room, or it is over.
        """
        with self._lock:
            room = self._fresh(code)
        if room is None:
            raise NoRoomError("there is no such room")
        return room.place

    def listen(self, listener: Callable[[str], None]) -> None:
        """Has `listener` called with the code of every room that moves or ends, from whatever thread."""
        self._listeners.append(listener)

    def _tell(self, code: str) -> None:
        for listener in self._listeners:
            listener(code)

    def _own(self, code: str, secret: str) -> Room:
        room = self._fresh(code)
        if room is None or not hmac.compare_digest(room.secret.encode(), secret.encode()):
            raise NoRoomError("there is no such room of this teacher")
        return room

    def _fresh(self, code: str) -> Room | None:
        """The room, unless its time is over."""
        room, now = self._store.get(code), self._clock()
        if room is None:
            return None
        missed = None if self._is_there(room.teacher) else room.missed if room.missed is not None else now
        if now - room.opened > LONGEST or (missed is not None and now - missed > AWAY):
            self._store.drop(code)
            return None
        if missed != room.missed:
            room = replace(room, missed=missed)
            self._store.put(code, room)
        return room


def tidy(code: str) -> str:
    """A code as somebody typed it, as it is kept; empty where it can be none."""
    found = "".join(code.upper().split())[: LENGTH + 1]
    return found if len(found) == LENGTH and set(found) <= set(LETTERS) else ""
