"""What every request passes before Streamlit gets it: a check of the host name that it asks for, and of uploaded files.

A page from elsewhere whose own name was pointed at this computer ("DNS rebinding") counts to the browser as a page of
ours.  It comes under its own name, so that only the server's names are answered, and addresses in numbers, which
cannot be pointed elsewhere.
"""

import asyncio
import os
import socket
from collections.abc import Iterable, Mapping
from functools import cache
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import streamlit as st

from vizformer.messages import N_, Message
from vizformer.serving import CLIENT, FRAMES, is_origin, one_of
from vizformer.web.catalogue.local_paths import is_loopback
from vizformer.web.frame import inline_scripts
from vizformer.web.frame.arrivals import ARRIVALS, PATIENCE, Arrivals, RefusedError
from vizformer.web.link import languages

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send
    from starlette.types import Message as ASGIMessage

HOSTS = "VIZFORMER_HOSTS"  # more names of this server, separated by commas
_ROUTE = "/_stcore/upload_file/"

Headers = Iterable[tuple[bytes, bytes]]
_FRAME = b"x-frame-options"

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
    """The host name of this machine, and its name on the local network (no name server is asked)."""
    name = _plain(socket.gethostname())
    return {name, f"{name.partition('.')[0]}.local"} - {""}


def names() -> list[str]:
    """The names that whoever runs the server has given it."""
    told: list[str] = [*os.environ.get(HOSTS, "").split(","), *(st.get_option("server.allowedHosts") or ())]
    return [name for name in told if name.strip()]


# --- the gate ---------------------------------------------------------------------------------------------------------


class Gate:
    """ASGI middleware around the whole app."""

    def __init__(self, app: "ASGIApp", arrivals: Arrivals = ARRIVALS) -> None:
        self._app, self._arrivals = app, arrivals

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        if scope["type"] == "websocket":  # nothing of ours stands in the way of its many messages
            try:
                await self._pass_on(scope, receive, send)
            except RefusedError:
                await send({"type": "websocket.close", "code": 1008, "reason": ""})  # before it is accepted: 403
            return
        answer = _Answer(send)
        try:
            await self._pass_on(scope, receive, answer)
        except RefusedError as refused:
            if not answer.begun:
                await _refuse(answer, refused)
        except Exception:  # logged by whoever stands before this gate
            if not answer.begun:
                wrong = N_("Something went wrong on this server. Its log has the details.")
                await _refuse(answer, RefusedError(500, wrong))
            raise

    async def _pass_on(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Hands a request to the app.

        Raises:
            RefusedError: it does not pass.
        """
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        if one_of() > 1:
            scope = _from_client(scope, headers)
        host = headers.get("host")
        if not is_ours(host, st.get_option("server.address"), names()):
            reason = N_(
                "This server does not go by the name {name}. If it should, start it with --allow-host and the name.",
                name=(host or "-")[:100],
            )
            raise RefusedError(403, reason)
        if scope["type"] == "websocket" and not _is_own_page(headers.get("origin"), host):
            raise RefusedError(403, N_("This server speaks with its own pages only."))
        session = scope["path"].rpartition(_ROUTE)[2].partition("/")[0] if _ROUTE in scope["path"] else None
        if session is None or scope["type"] != "http" or scope["method"] not in ("PUT", "POST"):
            await self._app(scope, receive, send)
            return
        given = headers.get("content-length", "")
        length = int(given) if given.isascii() and given.isdigit() and len(given) < 16 else None

        async def receive_counted() -> "ASGIMessage":
            message = await receive()
            coming.came(len(message.get("body", b"")))
            return message

        try:
            async with asyncio.timeout(PATIENCE) as deadline:
                with self._arrivals.begin(session, length, deadline) as coming:
                    await self._app(scope, receive_counted, send)
        except TimeoutError:
            if not deadline.expired():
                raise
            raise coming.refusal from None


class _Answer:
    def __init__(self, send: "Send") -> None:
        self._send, self.begun = send, False

    async def __call__(self, message: "ASGIMessage") -> None:
        if message["type"] == "http.response.start":
            self.begun = True
            message = {**message, "headers": with_ours(message.get("headers", ()))}
        await self._send(message)


def _is_own_page(origin: str | None, host: str | None) -> bool:
    """Whether a page of this server opens a connection, one that its options trust, or a program, which names none."""
    return (
        origin is None
        or origin.partition("://")[2].lower() == (host or "").lower()
        or origin in st.get_option("server.corsAllowedOrigins")
    )


def _from_client(scope: "Scope", headers: Mapping[str, str]) -> "Scope":
    """A worker's request, with the address of the browser instead of HAProxy's.

    HAProxy writes it over whatever came in its header, and nobody else comes to a worker's socket.  What a visitor says
    of its own address (X-Forwarded-For) is never believed.
    """
    told = headers.get(CLIENT, "")
    rest = [(name, value) for name, value in scope["headers"] if name.lower() != CLIENT.encode()]
    return {**scope, "headers": rest, "client": (told, 0) if _is_address(told) else None}


async def _refuse(send: "Send", refused: RefusedError) -> None:
    """Says why in all languages: the reader's language is not known here."""
    said = [
        str(Message(languages.catalogue(code).get(refused.reason.text, refused.reason.text), refused.reason.values))
        for code in languages.LANGUAGES
    ]
    body = "\n".join(dict.fromkeys(said)).encode()
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


# The headers of every answer, which tell the browser what to refuse: foreign scripts, guessed types, frames of other
# pages.
#
# Components of Streamlit come as scripts at blob: addresses; scripts in the page are known by their hashes. Styles
# stand in the page. Streamlit's reader of messages makes itself faster with WebAssembly.
def with_ours(headers: Headers) -> list[tuple[bytes, bytes]]:
    """The headers of an answer, and ours in the place of those of the same name."""
    ours = _ours(os.environ.get(FRAMES, ""))
    replaced = {*ours, _FRAME}
    return [*((name, value) for name, value in headers if name.lower() not in replaced), *ours.items()]


@cache
def _ours(frames: str) -> dict[bytes, bytes]:
    who = [origin.strip() for origin in frames.split(",") if is_origin(origin.strip())]
    policy = {
        "default-src": ["'none'"],
        "script-src": ["'self'", "blob:", "'wasm-unsafe-eval'", *inline_scripts.hashes()],
        "style-src": ["'self'", "'unsafe-inline'"],
        "img-src": ["'self'", "data:", "blob:"],
        "font-src": ["'self'", "data:"],
        "connect-src": ["'self'"],
        "worker-src": ["blob:"],
        "manifest-src": ["'self'"],
        "base-uri": ["'none'"],
        "form-action": ["'none'"],
        "frame-ancestors": who or ["'none'"],
    }
    headers = {
        b"content-security-policy": "; ".join(" ".join([name, *allowed]) for name, allowed in policy.items()).encode(),
        b"x-content-type-options": b"nosniff",
        b"referrer-policy": b"same-origin",
        b"permissions-policy": b"camera=(), geolocation=(), microphone=()",
    }
    return headers if who else {**headers, _FRAME: b"DENY"}  # (which knows no list)
