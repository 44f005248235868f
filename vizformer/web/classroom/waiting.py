"""Tells browsers that a room has moved: a request that is answered when there is something to say.

    GET <base>/_vizformer/room/K7M2QX?after=3   ->   {"version": 4}, or 404 where the room is over

Nobody's script runs for it: forty followers that wait cost the server forty open connections, and no run of a page.
"""

import asyncio
import contextlib
from typing import TYPE_CHECKING

from starlette.responses import JSONResponse
from starlette.routing import Route

from vizformer.web.classroom.rooms import NoRoomError, Rooms, tidy

if TYPE_CHECKING:
    from starlette.requests import Request

PATH = "/_vizformer/room"
WAIT = 20.0  # seconds; proxies give up after sixty
MOST_WAITING = 2000


class Waiting:
    """The requests that wait.

    Args:
        rooms: which they ask for.
    """

    def __init__(self, rooms: Rooms) -> None:
        self._rooms = rooms
        self._events: dict[str, asyncio.Event] = {}
        self._count = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        rooms.listen(self._moved)

    def route(self, base: str = "") -> Route:
        """What the server answers to."""
        return Route(f"{'/' + base if base else ''}{PATH}/{{code}}", self.answer)

    async def answer(self, request: "Request") -> JSONResponse:
        """Waits until the room is past the version that the browser knows."""
        code, said = tidy(request.path_params["code"]), request.query_params.get("after", "")
        after = int(said) if said.isascii() and said.isdigit() and len(said) < 10 else 0
        self._loop = asyncio.get_running_loop()
        if self._count >= MOST_WAITING:
            return JSONResponse({}, 503)
        self._count += 1
        try:
            event = self._events.setdefault(code, asyncio.Event())
            place = self._rooms.look(code)
            if place.version == after:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(event.wait(), WAIT)
                place = self._rooms.look(code)
            return JSONResponse({"version": place.version}, headers={"Cache-Control": "no-store"})
        except NoRoomError:
            self._events.pop(code, None)
            return JSONResponse({}, 404)
        finally:
            self._count -= 1

    def _moved(self, code: str) -> None:
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._wake, code)

    def _wake(self, code: str) -> None:
        if (event := self._events.pop(code, None)) is not None:
            event.set()
