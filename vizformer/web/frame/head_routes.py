"""Where a browser asks for heads and boxes of a text, one at a time (`vizformer.web.catalogue.head_files`)."""

from collections.abc import Callable

import streamlit as st
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from vizformer.web.catalogue import head_files
from vizformer.web.turns import LONGEST_NAME, TURNS, Visitor, network

_LASTING = {
    "Cache-Control": "private, max-age=3600, immutable",  # the address holds what it is computed from
    "Content-Encoding": "identity",  # gzip takes four times as long as the numbers, and makes them 8 % smaller
}


def base() -> str:
    """The path at which this server's addresses begin: "" or "/name"."""
    path = str(st.get_option("server.baseUrlPath") or "").strip("/")
    return f"/{path}" if path else ""


def routes() -> list[BaseRoute]:
    """The routes beside Streamlit's own."""
    start = f"{base()}/{head_files.PLACE}/{{name}}"
    return [
        Route(f"{start}/{{layer:int}}", _layer),
        Route(f"{start}/{{layer:int}}/{{head:int}}", _head),
        Route(f"{start}/{{box}}/{{layer:int}}/{{row:int}}", _box),
    ]


async def _layer(request: Request) -> Response:
    name, layer = request.path_params["name"], request.path_params["layer"]
    return await _answer(request, lambda: head_files.layer_file(name, layer))


async def _head(request: Request) -> Response:
    name, layer, head = (request.path_params[part] for part in ("name", "layer", "head"))
    return await _answer(request, lambda: head_files.head_file(name, layer, head))


async def _box(request: Request) -> Response:
    name, box, layer, row = (request.path_params[part] for part in ("name", "box", "layer", "row"))
    return await _answer(request, lambda: head_files.box_file(name, box, layer, row))


async def _answer(request: Request, compute: Callable[[], bytes]) -> Response:
    """Computes in a thread, when it is its turn among the runs of the pages."""

    name = f"heads {request.path_params['name']}"[:LONGEST_NAME]  # (a page asks beside its own run)
    who = Visitor(name, network(request.client and request.client.host))

    def in_turn() -> bytes:
        with TURNS.turn(who):
            return compute()

    try:
        content = await run_in_threadpool(in_turn)
    except head_files.GoneError:
        return Response(status_code=410, headers={"Cache-Control": "no-store"})
    return Response(content, media_type="application/octet-stream", headers=_LASTING)
