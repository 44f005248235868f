"""Tells browsers that a room has changed: a request that is answered when it does (long polling).

    GET <base>/_vizformer/room/K7M2QX?after=3     ->   {"version": 4}, or 404 where the room is over
    GET <base>/_vizformer/room/K7M2QX/followers   ->   {"count": 23} at once, or null where the room is over

No page runs for it: forty followers that wait cost the server forty open connections.
"""

import asyncio
import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from starlette.responses import JSONResponse
from starlette.routing import Route

from vizformer.web.classroom.listeners import Listeners
from vizformer.web.classroom.rooms import NoRoomError, Rooms, tidy
from vizformer.web.classroom.stores import EVERYTHING, StoreError

if TYPE_CHECKING:
    from starlette.requests import Request

PATH = "/_vizformer/room"
WAIT = 20.0  # seconds; proxies give up after sixty


@dataclass
class _Waiters:
    """The requests that wait for a change of one room: the event that wakes them, and their number."""

    moved: asyncio.Event = field(default_factory=asyncio.Event)
    count: int = 0


class Waiting:
    def __init__(self, rooms: Rooms) -> None:
        self._rooms = rooms
        self._waiters: dict[str, _Waiters] = {}
        self._listeners = Listeners()
        self._loop: asyncio.AbstractEventLoop | None = None
        rooms.listen(self._moved)

    @property
    def count(self) -> int:
        return self._listeners.count

    def routes(self, base: str = "") -> list[Route]:
        """The routes of the server for waiting browsers."""
        path = f"{'/' + base if base else ''}{PATH}/{{code}}"
        return [Route(path, self.answer), Route(f"{path}/followers", self.followers)]

    async def followers(self, request: "Request") -> JSONResponse:
        """The number of followers, for the teacher's page."""
        code = tidy(request.path_params["code"])
        try:
            count = await asyncio.to_thread(self._rooms.followers, code)
        except NoRoomError:
            count = None
        except StoreError:
            return JSONResponse({}, 503)
        return JSONResponse({"count": count}, headers={"Cache-Control": "no-store"})

    async def answer(self, request: "Request") -> JSONResponse:
        """Waits until the room is past the version that the browser knows."""
        code, said = tidy(request.path_params["code"]), request.query_params.get("after", "")
        after = int(said) if said.isascii() and said.isdigit() and len(said) < 10 else 0
        self._loop = asyncio.get_running_loop()
        if self._listeners.full(request):
            return JSONResponse({}, 503)
        try:
            with (
                self._listeners.listening(request),
                self._waits(code) as moved,
            ):  # before the look: a move in between is heard
                place = await asyncio.to_thread(self._rooms.look, code)  # the store may be on another machine
                if place.version == after:
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(moved.wait(), WAIT)
                    place = await asyncio.to_thread(self._rooms.look, code)
            return JSONResponse({"version": place.version}, headers={"Cache-Control": "no-store"})
        except NoRoomError:
            return JSONResponse({}, 404)
        except StoreError:
            return JSONResponse({}, 503)

    @contextlib.contextmanager
    def _waits(self, code: str) -> Iterator[asyncio.Event]:
        """Counts a request for as long as it waits for the room."""
        waiters = self._waiters.setdefault(code, _Waiters())
        waiters.count += 1
        try:
            yield waiters.moved
        finally:
            waiters.count -= 1
            if not waiters.count and self._waiters.get(code) is waiters:
                del self._waiters[code]

    def _moved(self, code: str) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake, code)

    def _wake(self, code: str) -> None:
        woken = list(self._waiters.values()) if code == EVERYTHING else [self._waiters.get(code)]
        for waiters in woken:
            if waiters is not None:
                waiters.moved.set()
                waiters.moved = asyncio.Event()  # for those who come back
