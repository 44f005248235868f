"""What every request passes before Streamlit sees it: under which name the server was asked, and how much is sent.

A page from elsewhere whose own name was pointed at this computer ("DNS rebinding") counts to the browser as a page of
ours.  It comes under its own name, so that only the server's names are answered, and addresses in numbers, which
cannot be pointed elsewhere.

Files that are put up lie in memory until their reader presses the button.  All that lie there together have at most the
size of one upload; what nobody asked for within ten minutes is dropped, and where another session needs the room, what
nobody asked for within one minute.
"""

import os
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import streamlit as st
from streamlit.runtime import Runtime

from vizformer.messages import N_, Message
from vizformer.serving import CLIENT, one_of
from vizformer.web.catalogue import uploads
from vizformer.web.catalogue.local_paths import is_loopback
from vizformer.web.link import languages

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

HOSTS = "VIZFORMER_HOSTS"  # more names of this server, separated by commas
UNCLAIMED = 600.0  # seconds that a file waits for its reader
UNCLAIMED_WHERE_FULL = 60.0  # seconds, where another session needs the room
_FRAME = 2**20  # bytes that a form may have around its file
_LEAST = 2**16  # bytes that a file counts at least: what is kept beside it
_ROUTE = "/_stcore/upload_file/"


# --- names ------------------------------------------------------------------------------------------------------------


def is_ours(host: str | None, address: str | None, more: Iterable[str] = ()) -> bool:
    """Whether `host`, as a browser sends it, names this server.

    Args:
        address: where the server listens; None stands for everywhere.
        more: names that it was told it has; "*.example.org" stands for all names below, "*" for any.
    """
    name = _name(host)
    if name is None:
        return False
    if _is_address(name) or name == "localhost" or name.endswith(".localhost"):
        return True
    known = {_plain(one) for one in [*more, address or ""]}
    if not address or not is_loopback(address):
        known |= _machine()
    return "*" in known or name in known or any(name.endswith(one[1:]) for one in known if one.startswith("*."))


def _name(host: str | None) -> str | None:
    """The name in a Host header, without its port; None where it is none."""
    try:
        parts = urlsplit(f"//{host}") if host else None
        if parts is None or parts.netloc != host or "@" in host or parts.port == 0:
            return None
        return _plain(parts.hostname or "") or None
    except ValueError:
        return None


def _plain(name: str) -> str:
    return name.strip().lower().rstrip(".")


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


@cache
def _machine() -> set[str]:
    """What this machine calls itself, and is called on its own network (without asking any name server)."""
    name = _plain(socket.gethostname())
    return {name, f"{name.partition('.')[0]}.local"} - {""}


def names() -> list[str]:
    """The names that whoever runs the server has given it."""
    told: list[str] = [*os.environ.get(HOSTS, "").split(","), *(st.get_option("server.allowedHosts") or ())]
    return [name for name in told if name.strip()]


# --- uploads ----------------------------------------------------------------------------------------------------------


class Arrivals:
    """How much lies in memory of what was put up, and what is on its way; asked by the event loop only.

    Args:
        clock: seconds that only grow.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._coming: dict[object, tuple[str, int]] = {}  # sessions and bytes
        self._seen: dict[tuple[str, str], float] = {}  # (session, file) -> when it was found first

    def refuses(self, session: str, length: int | None) -> tuple[int, Message] | None:
        """The status and the reason where a file of `length` bytes is not taken."""
        limit = uploads.limit() + _FRAME
        if not uploads.is_on():
            return 403, N_("This server takes no uploads. Choose another model, or run VizFormer yourself.")
        if length is None:
            return 411, N_("This server takes only files whose size is said beforehand.")
        if length > limit:
            return 413, N_("The file is larger than this server takes.")
        needed = max(length, _LEAST)
        if self._bytes() + needed > limit:
            self._make_room(session, self._bytes() + needed - limit)
        if self._bytes() + needed > limit:
            return 503, N_("This server is taking other files just now. Try again in a few minutes.")
        return None

    def begin(self, session: str, length: int) -> object:
        """Keeps room for a file; give what is returned to `end`."""
        ticket = object()
        self._coming[ticket] = session, length
        return ticket

    def end(self, ticket: object) -> None:
        del self._coming[ticket]

    def _bytes(self) -> int:
        there = sum(max(len(file.data), _LEAST) for files in _stored().values() for file in files.values())
        return there + sum(max(length, _LEAST) for __, length in self._coming.values())

    def look(self) -> None:
        """Drops what nobody has asked for; a session that is still sending has not had the time."""
        for (session, file), seconds in self._waiting().items():
            if seconds > UNCLAIMED:
                _drop(session, file)

    def _make_room(self, session: str, needed: int) -> None:
        """Drops files of other sessions, those that wait longest first, until there are `needed` bytes more."""
        stored = _stored()
        for (other, file), seconds in sorted(self._waiting().items(), key=lambda one: -one[1]):
            if needed <= 0 or seconds <= UNCLAIMED_WHERE_FULL:
                return
            if other != session:
                needed -= max(len(stored[other][file].data), _LEAST)
                _drop(other, file)

    def _waiting(self) -> dict[tuple[str, str], float]:
        """For how many seconds each file has waited for its reader."""
        now, sending = self._clock(), {session for session, __ in self._coming.values()}
        there = {(session, file) for session, files in _stored().items() for file in files}
        self._seen = {one: now if one[0] in sending else self._seen.get(one, now) for one in there}
        return {one: now - since for one, since in self._seen.items()}


def _stored() -> dict[str, dict[str, Any]]:
    """Streamlit's own list: session -> file -> what was put up."""
    stored = getattr(Runtime.instance().uploaded_file_mgr, "file_storage", {}) if Runtime.exists() else {}
    return {session: dict(files) for session, files in list(stored.items())}


def _drop(session: str, file: str) -> None:
    Runtime.instance().uploaded_file_mgr.remove_file(session, file)  # type: ignore[attr-defined]  # (in memory)


ARRIVALS = Arrivals()


# --- the gate ---------------------------------------------------------------------------------------------------------


class Gate:
    """ASGI middleware around the whole app."""

    def __init__(self, app: "ASGIApp", arrivals: Arrivals = ARRIVALS) -> None:
        self._app, self._arrivals = app, arrivals

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        if one_of() > 1:
            scope = _from_client(scope, headers)
        host = headers.get("host")
        if not is_ours(host, st.get_option("server.address"), names()):
            reason = N_(
                "This server does not go by the name {name}. If it should, start it with --allow-host and the name.",
                name=(host or "-")[:100],
            )
            await _refuse(scope, send, 403, reason)
            return
        session = scope["path"].rpartition(_ROUTE)[2].partition("/")[0] if _ROUTE in scope["path"] else None
        if session is None or scope["type"] != "http" or scope["method"] not in ("PUT", "POST"):
            await self._app(scope, receive, send)
            return
        given = headers.get("content-length", "")
        length = int(given) if given.isascii() and given.isdigit() and len(given) < 16 else None
        if (refused := self._arrivals.refuses(session, length)) is not None:
            await _refuse(scope, send, *refused)
            return
        ticket = self._arrivals.begin(session, length or 0)
        try:
            await self._app(scope, receive, send)
        finally:
            self._arrivals.end(ticket)


def _from_client(scope: "Scope", headers: Mapping[str, str]) -> "Scope":
    """A worker's request, with the address of who asks instead of HAProxy's.

    HAProxy writes it over whatever came in its header, and nobody else comes to a worker's socket.  What a visitor says
    of its own address (X-Forwarded-For) is never believed.
    """
    told = headers.get(CLIENT, "")
    rest = [(name, value) for name, value in scope["headers"] if name.lower() != CLIENT.encode()]
    return {**scope, "headers": rest, "client": (told, 0) if _is_address(told) else None}


async def _refuse(scope: "Scope", send: "Send", status: int, reason: Message) -> None:
    """Says why in all languages: whose language is asked for is not known here."""
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008, "reason": ""})  # before it is accepted: 403
        return
    said = [
        str(Message(languages.catalogue(code).get(reason.text, reason.text), reason.values))
        for code in languages.LANGUAGES
    ]
    body = "\n".join(dict.fromkeys(said)).encode()
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
