"""What happens once, when the server starts, before the first visitor."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import asynccontextmanager, contextmanager

import click
import streamlit as st
from starlette.middleware import Middleware
from starlette.routing import Route

from vizformer.checkpoints import own_code
from vizformer.freed_memory import give_freed_memory_back
from vizformer.serving import listening, one_of
from vizformer.web.catalogue import model_cache, session_folders
from vizformer.web.frame import (
    arrivals,
    classroom,
    component_scripts,
    first_files,
    first_picture,
    page_frame,
    request_gate,
)
from vizformer.web.inside_streamlit import BackMsg, ForwardMsg, Runtime, SessionClient
from vizformer.web.link.languages import LANGUAGES

LOOK = 20.0  # seconds between two looks at what was put up
PATIENCE = 60.0  # seconds for a visit


@asynccontextmanager
async def lifespan(app: st.App) -> AsyncIterator[None]:
    """Prepares the process, prints the address, and looks after what visitors put up for as long as it runs."""
    give_freed_memory_back()
    listening.send_at_once()
    component_scripts.serve()
    # Streamlit takes a folder named pages/ for its old way of making apps until st.navigation has been called once.
    # Left to the first visitor, that visitor would get a "page not found" on top of a deep link.
    with _quiet("streamlit.runtime.scriptrunner_utils.script_run_context"):  # it remarks that nobody is visiting yet
        st.navigation([st.Page(_nothing, title="VizFormer")])
    if one_of() == 1:
        announce(st.get_option("server.address"), st.get_option("server.port"))
    elif st.get_option("server.sslCertFile"):  # HAProxy, which listens there, would speak without it
        raise click.ClickException("--workers knows no server.sslCertFile. Leave one of the two out.")
    attending = [
        asyncio.create_task(task)
        for task in (visit(), session_folders.attend(), model_cache.attend(), look_at_arrivals(), classroom.attend())
    ]
    try:
        yield None
    finally:
        for task in attending:
            task.cancel()
        session_folders.remove_all()


def middleware() -> list[Middleware]:
    """The middleware in front of Streamlit."""
    return [Middleware(request_gate.Gate), Middleware(first_files.FirstFiles)]


def routes() -> list[Route]:
    """The routes beside Streamlit's own."""
    base = st.get_option("server.baseUrlPath").strip("/")
    return [*classroom.WAITING.routes(base), *classroom.POINTING.routes(base)]


async def look_at_arrivals() -> None:
    """Looks until it is cancelled; here, in the event loop, where files arrive."""
    while True:
        await asyncio.sleep(LOOK)
        arrivals.ARRIVALS.look()


def announce(host: str | None, port: int) -> None:
    """Prints where the app can be reached."""
    scheme = "https" if st.get_option("server.sslCertFile") else "http"
    listening.announce(host, port, scheme, st.get_option("server.baseUrlPath").strip("/"), own_code.named())


def _nothing() -> None: ...


@contextmanager
def _quiet(name: str) -> Iterator[None]:
    logger = logging.getLogger(name)
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


class _Visitor(SessionClient):
    """A client that runs a page while the server starts, and keeps what its components are sent."""

    def __init__(self, language: str) -> None:
        self.language, self.finished = language, asyncio.Event()

    def write_forward_msg(self, msg: ForwardMsg) -> None:
        if msg.WhichOneof("type") == "script_finished":
            self.finished.set()
        elif msg.WhichOneof("type") == "delta" and msg.delta.new_element.WhichOneof("type") == "bidi_component":
            first_picture.take(self.language, msg.delta.new_element.bidi_component)

    @property
    def client_context(self) -> None:
        return None


async def visit() -> None:
    """Imports what pages are made of, then opens the first one; what goes wrong there goes wrong alone."""
    await _alone(asyncio.to_thread(page_frame.load))
    for language in LANGUAGES:
        await _alone(_open(_Visitor(language)))


async def _alone(work: Awaitable[None]) -> None:
    try:
        await work
    except Exception:
        logging.getLogger(__name__).exception("The first page could not be opened while the server started.")


async def _open(visitor: _Visitor) -> None:
    runtime = Runtime.instance()
    session = runtime.connect_session(visitor, {})
    ask = BackMsg()
    ask.rerun_script.context_info.locale = visitor.language.replace("_", "-")
    try:
        runtime.handle_backmsg(session, ask)
        await asyncio.wait_for(visitor.finished.wait(), PATIENCE)
    finally:
        runtime.close_session(session)
