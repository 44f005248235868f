"""Files that visitors put up: how much may lie in memory, and how slowly a file may come.

Files that are put up lie in memory until their reader presses the button.  All that lie there or are on their way have
together at most the size of one upload, counted by what has come and not by what was announced.  What nobody asked for
within ten minutes is dropped.  Where another session needs the room, what nobody asked for within one minute is dropped
first, then files of the sessions that hold more than twice as much.  A file that comes too slowly is not taken.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from vizformer.messages import N_, Message
from vizformer.web.catalogue import uploads
from vizformer.web.inside_streamlit import Runtime

UNCLAIMED = 600.0  # seconds that a file waits for its reader
UNCLAIMED_WHERE_FULL = 60.0  # seconds, where another session needs the room
PATIENCE = 30.0  # seconds in which a part of a file must come
LEAST_RATE = 8 * 2**10  # bytes a second that such a part has; forty files at once then need 2.6 Mbit/s
LONGEST = 3600.0  # seconds that a file may take to come
TIMES = 2  # as much as the session that needs the room: who holds more gives way
_FRAME = 2**20  # bytes that a form may have around its file
_LEAST = 2**16  # bytes that a file counts at least: what is kept beside it


class RefusedError(Exception):
    """A file that is not taken: the status of the answer, and the reason."""

    def __init__(self, status: int, reason: Message) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason


def _full() -> RefusedError:
    return RefusedError(503, N_("This server is taking other files just now. Try again in a few minutes."))


class Coming:
    """A file that is on its way.

    Attributes:
        counted: bytes of room that it has; at least what has come.
        refusal: why it ends when its deadline is over.
    """

    def __init__(self, arrivals: "Arrivals", session: str, announced: int, deadline: asyncio.Timeout) -> None:
        self.session, self.announced, self.counted = session, announced, 0
        self.refusal = RefusedError(
            408, N_("The file came too slowly. Use a faster connection, or choose a smaller file.")
        )
        self._arrivals, self._deadline, self._clock = arrivals, deadline, asyncio.get_running_loop().time
        self._begun, self._came, self._came_in_time, self._dropped = self._clock(), 0, 0, False

    def came(self, n: int) -> None:
        """Counts `n` bytes more, and gives the rest of the file its time."""
        self._came += n
        if self._dropped:
            raise self.refusal
        if self._came > self.counted:
            self._arrivals.grow(self, min(self.announced, self._came + max(_LEAST, self._came // 8)))
        if self._came >= self.announced:
            self._deadline.reschedule(None)
        elif self._came - self._came_in_time >= PATIENCE * LEAST_RATE:
            self._came_in_time = self._came
            self._deadline.reschedule(min(self._clock() + PATIENCE, self._begun + LONGEST))

    def drop(self) -> None:
        """Ends the upload now, since another one needs the memory."""
        self.refusal, self.counted, self._dropped = _full(), 0, True
        if not self._deadline.expired():
            self._deadline.reschedule(self._clock())


@dataclass(eq=False)
class _Held:
    """A file that lies in memory or is on its way, and for how many seconds it has waited for its reader."""

    session: str
    bytes: int
    waited: float
    drop: Callable[[], None]


class Arrivals:
    """What lies in memory of what was put up, and what is on its way; asked by the event loop only.

    What there is no room for is refused (`RefusedError`).
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._coming: set[Coming] = set()
        self._seen: dict[tuple[str, str], float] = {}  # (session, file) -> when it was found first

    @contextmanager
    def begin(self, session: str, length: int | None, deadline: asyncio.Timeout) -> Iterator[Coming]:
        """A file of `length` bytes, on its way until the end."""
        if not uploads.is_on():
            raise RefusedError(
                403, N_("This server takes no uploads. Choose another model, or run VizFormer yourself.")
            )
        if length is None:
            raise RefusedError(411, N_("This server takes only files whose size is said beforehand."))
        if length > _limit():
            raise RefusedError(413, N_("The file is larger than this server takes."))
        coming = Coming(self, session, length, deadline)
        if self._in_the_way(coming, max(length, _LEAST)) is None:
            raise _full()
        self._coming.add(coming)
        try:
            self.grow(coming, _LEAST)
            yield coming
        finally:
            self._coming.discard(coming)

    def grow(self, coming: Coming, counted: int) -> None:
        """Gives a file room for `counted` bytes."""
        in_the_way = self._in_the_way(coming, counted - coming.counted)
        if in_the_way is None:
            raise _full()
        for held in in_the_way:
            held.drop()
        coming.counted = counted

    def look(self) -> None:
        """Drops what nobody has asked for; a session that is still sending has not had the time."""
        for held in self._held():
            if held.waited > UNCLAIMED:
                held.drop()

    def _in_the_way(self, coming: Coming, more: int) -> list[_Held] | None:
        """The files to drop where an upload needs more bytes; None where dropping files does not free enough."""
        held = self._held()
        missing = sum(one.bytes for one in held) + more - _limit()
        mine = sum(one.bytes for one in held if one.session == coming.session) - coming.counted + coming.announced
        dropped: list[_Held] = []
        others = defaultdict[str, list[_Held]](list)
        for one in sorted(held, key=lambda one: -one.waited):
            if one.session == coming.session:
                continue
            if one.waited > UNCLAIMED_WHERE_FULL and missing > 0:
                dropped.append(one)
                missing -= one.bytes
            else:
                others[one.session].append(one)
        holds = {session: sum(one.bytes for one in theirs) for session, theirs in others.items()}
        while missing > 0:
            session = max(holds, key=holds.__getitem__, default=None)
            if session is None or holds[session] <= TIMES * mine:
                return None
            dropped.append(max(others[session], key=lambda one: one.bytes))
            others[session].remove(dropped[-1])
            holds[session] -= dropped[-1].bytes
            missing -= dropped[-1].bytes
        return dropped

    def _held(self) -> list[_Held]:
        """All files that take memory."""
        now, sending = self._clock(), {coming.session for coming in self._coming}
        stored = _stored()
        self._seen = {one: now if one[0] in sending else self._seen.get(one, now) for one in stored}
        return [
            *(
                _Held(one[0], max(size, _LEAST), now - self._seen[one], lambda one=one: _drop(*one))  # type: ignore[misc]
                for one, size in stored.items()
            ),
            *(_Held(one.session, one.counted, 0.0, one.drop) for one in self._coming),
        ]


def _limit() -> int:
    return uploads.limit() + _FRAME


def _stored() -> dict[tuple[str, str], int]:
    """Streamlit's own list: (session, file) -> bytes."""
    stored: dict[str, dict[str, Any]] = (
        getattr(Runtime.instance().uploaded_file_mgr, "file_storage", {}) if Runtime.exists() else {}
    )
    return {
        (session, name): len(file.data) for session, files in list(stored.items()) for name, file in list(files.items())
    }


def _drop(session: str, file: str) -> None:
    Runtime.instance().uploaded_file_mgr.remove_file(session, file)  # type: ignore[attr-defined]  # (in memory)


ARRIVALS = Arrivals()
