"""What browsers ask of a class: to be told when it changes (long polling), and where the teacher points."""

import asyncio
import contextlib
import json
import re
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from vizformer.web.classroom.rooms import MOST, NoRoomError, Rooms, tidy
from vizformer.web.classroom.stores import EVERYTHING, StoreError
from vizformer.web.turns import network

if TYPE_CHECKING:
    from starlette.requests import Request
if TYPE_CHECKING:
    from starlette.requests import Request


# Tells browsers that a room has changed: a request that is answered when it does (long polling).
#
# GET <base>/_vizformer/room/K7M2QX?after=3     ->   {"version": 4}, or 404 where the room is over
# GET <base>/_vizformer/room/K7M2QX/followers   ->   {"count": 23} at once, or null where the room is over
#
# No page runs for it: forty followers that wait cost the server forty open connections.

PATH = "/_vizformer/room"
WAIT = 20.0  # seconds; proxies give up after sixty

MOST_WAITING = 2000  # at once
MOST_OF_ONE = MOST_WAITING // 2  # of one network, which may be a school


class Listeners:
    """Requests that stay open.  One network has at most half of the places, so that it takes no news from other classes."""

    def __init__(self) -> None:
        self._of: Counter[str] = Counter()

    @property
    def count(self) -> int:
        return self._of.total()

    def full(self, request: "Request") -> bool:
        """Whether there is no place for this request.  A proxy that names no visitors counts as many networks."""
        of = _network(request)
        return self.count >= MOST_WAITING or (bool(of) and self._of[of] >= MOST_OF_ONE)

    @contextmanager
    def listening(self, request: "Request") -> Iterator[None]:
        of = _network(request)
        self._of[of] += 1
        try:
            yield
        finally:
            self._of[of] -= 1
            if not self._of[of]:
                del self._of[of]


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


def _network(request: "Request") -> str:
    return network(request.client.host if request.client else None)


# The teacher's pointer: where it is on the page, passed on to the browsers of those who follow.
#
# POST <base>/_vizformer/room/K7M2QX/pointer   {"secret": "...", "at": {"box": "st-key-heads", "x": 0.31, "y": 0.7,
# "within": {"tag": "p", "path": [0, 2], "x": 0.5, "y": 0.1}}}
# GET  <base>/_vizformer/room/K7M2QX/pointer   -> a stream of such places (server-sent events), null where it is gone
#
# A place is told as a part of the page and shares of its width and height, as screens differ in size: the nearest box with a
# name, and, where the student's looks the same, the smallest part `within` it (which child of which child).
# Nothing of it is kept but the newest place, and nobody's script runs for it.

MOST_BYTES = 1000  # of what a teacher's browser sends
LONGEST = 20.0  # seconds of a stream, after which the browser asks for the next one: a server that ends waits for it
NOWHERE = "null"
_BOX = re.compile(r"st-key-[\w-]{1,80}|stMainBlockContainer")
_TAG = re.compile(r"[a-zA-Z][\w-]{0,30}", re.ASCII)
_DEEPEST, _WIDEST = 60, 9999  # parts within each other, and beside each other


class Pointing:
    """The pointers of all rooms."""

    def __init__(self, rooms: Rooms) -> None:
        self._rooms = rooms
        self._streams: dict[str, set[asyncio.Queue[str]]] = {}
        self._newest: dict[str, str] = {}  # of at most as many rooms as there can be; for streams that come next
        self._listeners = Listeners()
        self._loop: asyncio.AbstractEventLoop | None = None
        rooms.listen_to_pointers(self._pointed)

    def routes(self, base: str = "") -> list[Route]:
        """The routes of the server for pointers."""
        path = f"{'/' + base if base else ''}{PATH}/{{code}}/pointer"
        return [Route(path, self.point, methods=["POST"]), Route(path, self.stream, methods=["GET"])]

    @property
    def count(self) -> int:
        """How many browsers watch a pointer."""
        return sum(map(len, self._streams.values()))

    async def point(self, request: "Request") -> Response:
        """Takes the place of a teacher's pointer."""
        code, body = tidy(request.path_params["code"]), bytearray()
        async for part in request.stream():
            body += part
            if len(body) > MOST_BYTES:
                return JSONResponse({}, 413)
        try:
            sent = json.loads(body)
            secret, place = str(sent["secret"]), _place(sent["at"])
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            return JSONResponse({}, 400)
        try:
            await asyncio.to_thread(self._rooms.point, code, secret, place)
        except NoRoomError:
            if place != NOWHERE:  # (the class may end before its pointer is taken away)
                return JSONResponse({}, 404)
        except StoreError:
            return JSONResponse({}, 503)
        return Response(status_code=204)

    async def stream(self, request: "Request") -> Response:
        """Tells the places of a pointer for as long as the browser listens and the room is there."""
        code = tidy(request.path_params["code"])
        self._loop = asyncio.get_running_loop()
        if self._listeners.full(request):
            return JSONResponse({}, 503)
        try:
            await asyncio.to_thread(self._rooms.look, code)
        except NoRoomError:
            return Response(status_code=204)  # the browser does not ask again
        except StoreError:
            return JSONResponse({}, 503)
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(self._told(code, request), media_type="text/event-stream", headers=headers)

    async def _told(self, code: str, request: "Request") -> AsyncIterator[str]:
        with self._listeners.listening(request):
            async with contextlib.aclosing(self._places(code)) as places:
                async for place in places:
                    yield place

    async def _places(self, code: str) -> AsyncGenerator[str]:
        places: asyncio.Queue[str] = asyncio.Queue()
        self._streams.setdefault(code, set()).add(places)
        try:
            yield f"data: {self._newest.get(code, NOWHERE)}\n\n"
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LONGEST):
                    while True:
                        place = await places.get()
                        while not places.empty():  # a slow browser gets the newest place only
                            place = places.get_nowait()
                        yield f"data: {place}\n\n"
            yield "event: again\ndata:\n\n"
        finally:
            streams = self._streams[code]
            streams.discard(places)
            if not streams:
                del self._streams[code]

    def _pointed(self, code: str, place: str) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._pass_on, code, place)

    def _pass_on(self, code: str, place: str) -> None:
        self._newest.pop(code, None)
        if place != NOWHERE:
            self._newest[code] = place
        if len(self._newest) > MOST:  # a class that ends while its teacher points leaves its place behind
            del self._newest[next(iter(self._newest))]
        for places in self._streams.get(code, ()):
            places.put_nowait(place)


def _place(at: object) -> str:
    """A place as it is passed on, rounded to what can be seen."""
    if at is None:
        return NOWHERE
    if not isinstance(at, dict):
        raise ValueError("no place")
    found: dict[str, object] = {"box": _named(at["box"], _BOX), **_shares(at)}
    if (within := at.get("within")) is not None:
        path = [int(index) for index in list(within["path"])[: _DEEPEST + 1]]
        if len(path) > _DEEPEST or not all(0 <= index <= _WIDEST for index in path):
            raise ValueError("no place")
        found["within"] = {"tag": _named(within["tag"], _TAG), "path": path, **_shares(within)}
    return json.dumps(found)


def _named(name: object, names: re.Pattern[str]) -> str:
    if not names.fullmatch(str(name)):
        raise ValueError("no place")
    return str(name)


def _shares(at: dict[str, Any]) -> dict[str, float]:
    shares = {name: round(float(at[name]), 4) for name in "xy"}
    if not all(-1 <= share <= 2 for share in shares.values()):  # (which is false of what is no number)
        raise ValueError("no place")
    return shares
