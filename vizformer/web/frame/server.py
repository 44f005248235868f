"""What happens once, when the server starts, before the first visitor."""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import click
import streamlit as st
from starlette.middleware import Middleware

from vizformer.web.catalogue import session_folders, torch_setup
from vizformer.web.frame import request_gate

LOOK = 20.0  # seconds between two looks at what was put up
ANY = ("0.0.0.0", "::", "", None)  # addresses that mean "every network of this machine"


@asynccontextmanager
async def lifespan(app: st.App) -> AsyncIterator[None]:
    """Prepares the process, prints the address, and looks after what visitors put up for as long as it runs."""
    torch_setup.give_freed_memory_back()
    # Streamlit takes a folder named pages/ for its old way of making apps until st.navigation has been called once.
    # Left to the first visitor, that visitor would get a "page not found" on top of a deep link.
    with _quiet("streamlit.runtime.scriptrunner_utils.script_run_context"):  # it remarks that nobody is visiting yet
        st.navigation([st.Page(_nothing, title="VizFormer")])
    announce(st.get_option("server.address"), st.get_option("server.port"))
    attending = [asyncio.create_task(task) for task in (session_folders.attend(), look_at_arrivals())]
    try:
        yield None
    finally:
        for task in attending:
            task.cancel()
        session_folders.remove_all()


def middleware() -> list[Middleware]:
    """What stands before Streamlit."""
    return [Middleware(request_gate.Gate)]


async def look_at_arrivals() -> None:
    """Looks until it is cancelled; here, in the event loop, where files arrive."""
    while True:
        await asyncio.sleep(LOOK)
        request_gate.ARRIVALS.look()


def announce(host: str | None, port: int) -> None:
    """Prints where the app can be reached, from this machine and, if it listens there, from others."""
    path = st.get_option("server.baseUrlPath").strip("/")
    scheme = "https" if st.get_option("server.sslCertFile") else "http"

    def address(name: str) -> str:
        return f"{scheme}://{f'[{name}]' if ':' in name else name}:{port}/{path}".rstrip("/")

    local = host is None or host in ANY or host in ("127.0.0.1", "::1")
    click.echo(f"\n  VizFormer is running at {address('localhost' if local else str(host))}")
    if host in ANY and (lan := lan_address()):
        click.echo(f"  and, for others on this network, at {address(lan)}")
    click.echo("  Ctrl+C stops it.\n")


def lan_address() -> str | None:
    """This machine's address on its network. No packet is sent: a UDP socket is only asked which way it would go."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("10.254.254.254", 1))
            name: str = probe.getsockname()[0]
        except OSError:
            return None
    return None if name.startswith("127.") else name


def _nothing() -> None: ...


@contextmanager
def _quiet(name: str) -> Iterator[None]:
    logger = logging.getLogger(name)
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before
