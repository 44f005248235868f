"""Addresses: whether the server can listen there, who can reach it, and the lines that say so in the terminal."""

import contextlib
import errno
import gc
import ipaddress
import socket
import sys
from collections.abc import Iterable
from urllib.parse import quote

import click

HOST = "127.0.0.1"
PORT = 8501
ANY = ("0.0.0.0", "::", "", None)  # addresses that mean "every network of this machine"


def is_loopback(host: str) -> bool:
    """Whether only this computer can come in at an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def require_free(host: str, port: int) -> None:
    """Tries to listen.

    Raises:
        click.ClickException: nothing can listen there; with a port that is free.
    """
    try:
        _listen(host, port)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            other = _free_port_after(host, port)
            raise click.ClickException(
                f"port {port} is already in use, perhaps by another VizFormer (http://localhost:{port}). "
                f"Stop that one, or take another port: vizformer --port {other}   or   make run PORT={other}"
            ) from error
        if error.errno == errno.EACCES:
            raise click.ClickException(
                f"this account may not listen on port {port} (ports below 1024 are the system's). "
                f"Take another one: vizformer --port {PORT}"
            ) from error
        raise click.ClickException(
            f"cannot listen on {host} ({error.strerror or error}). --host takes an address of this machine: "
            f"{HOST} for yourself, 0.0.0.0 for everyone on your network."
        ) from error


def _free_port_after(host: str, port: int) -> int:
    for other in range(port + 1, min(port + 100, 65536)):
        with contextlib.suppress(OSError):
            _listen(host, other)
            return other
    return 0


def _listen(host: str, port: int) -> None:
    """Listens for a moment; raises OSError as the server would."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        if sys.platform != "win32":  # there the option means something else
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((host, port))


def send_at_once() -> None:
    """Has what this server writes leave at once, also where the browser has not yet said that the last piece came.

    A file is written in two pieces, its headers and its content.  Linux holds the second one back for 40 ms, unless
    TCP_NODELAY is set.  asyncio sets it for connections whose socket names its protocol, as Streamlit's does not; but a
    connection takes it over from the socket that listens.
    """
    for one in gc.get_objects():
        if type(one) is socket.socket and one.fileno() >= 0 and one.family in (socket.AF_INET, socket.AF_INET6):
            with contextlib.suppress(OSError):  # (what is no TCP has no such option)
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def announce(host: str | None, port: int, scheme: str = "http", path: str = "", models: Iterable[str] = ()) -> None:
    """Prints where the app can be reached, from this machine and, if it listens there, from others; and there the heads of
    the `models` of its own code.
    """

    def address(name: str) -> str:
        return f"{scheme}://{f'[{name}]' if ':' in name else name}:{port}/{path}".rstrip("/")

    local = host is None or host in ANY or host in ("127.0.0.1", "::1")
    click.echo(f"\n  VizFormer is running at {address('localhost' if local else str(host))}")
    if host in ANY and (lan := lan_address()):
        click.echo(f"  and, for others on this network, at {address(lan)}")
    for model in models:
        place = address("localhost" if local else str(host))
        click.echo(f"  The heads of {model}: {place}/attention?model=code/{quote(model)}")
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
