"""More than one server process behind one port: `vizformer --workers N`.

Each worker (`vizformer.web.frame.worker`) listens at a socket in a folder that only this account can enter, so that
nobody comes to a worker but through HAProxy.  It is told the address that browsers see: the app's own checks of names and
of who may open paths are those of a server that listens there.
"""

import os
import secrets
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import click

from vizformer.checkpoints import own_code
from vizformer.serving import ONE_OF, haproxy, listening
from vizformer.serving.supervisor import Service, Supervisor

if sys.platform != "win32":  # where HAProxy is not found, before anything of these is needed
    import fcntl
    import resource

PREFIX = "vizformer-workers-"
MEMORY = "VIZFORMER_CACHE_BYTES"
LONGEST = 80  # characters of the folder: systems take about 100 for the whole name of a socket
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def serve(host: str, port: int, n_workers: int, options: Mapping[str, object]) -> None:
    """Serves with `n_workers` processes until a signal asks for the end.

    Args:
        options: Streamlit's, by their names ("server.maxUploadSize").

    Raises:
        click.ClickException: there is no HAProxy; a worker or HAProxy does not start.
    """
    program = haproxy.find()
    with _folder() as folder, Supervisor() as supervisor:
        sockets = [folder / f"{number}.socket" for number in range(1, n_workers + 1)]
        told = environment(n_workers)
        for number, place in enumerate(sockets, 1):
            supervisor.start(Service(f"worker {number}", command(place, options), told))
        if not supervisor.until(lambda: all(map(_answers, sockets))):
            return
        written = folder / "haproxy.cfg"
        written.write_text(haproxy.configuration(host, port, sockets, _connections()), encoding="utf-8")
        supervisor.start(Service("haproxy", [program, "-q", "-db", "-f", str(written)]))
        if supervisor.until(lambda: _listens(host, port)):
            click.echo(f"\n  {n_workers} workers, one port:", nl=False)
            listening.announce(host, port, models=own_code.named())
            supervisor.watch()


def command(place: Path, options: Mapping[str, object]) -> list[str]:
    """Serves the app at a socket."""
    written = [part for name, value in options.items() for part in (f"--{name}", str(value))]
    return [sys.executable, "-m", "vizformer.web.frame.worker", str(place), *written]


def environment(n_workers: int) -> dict[str, str]:
    """What each worker is told: how many they are, its part of the memory, and one thread for each library.

    All sign their cookies alike, so that a browser whose worker is gone is known to the next one.
    """
    told = {
        "STREAMLIT_SERVER_COOKIE_SECRET": secrets.token_hex(32),
        **dict.fromkeys(THREADS, "1"),
        **os.environ,
        ONE_OF: str(n_workers),
    }
    if (given := told.get(MEMORY, "").strip()).isdecimal():
        told[MEMORY] = str(int(given) // n_workers)
    return told


@contextmanager
def _folder() -> Iterator[Path]:
    """For the sockets and the configuration; only this account can enter it.

    It is locked for as long as this process lives, however it ends: one that nobody has locked is what a killed one left.
    """
    short = len(tempfile.gettempdir()) + len(PREFIX) + 10 <= LONGEST
    made = Path(tempfile.mkdtemp(prefix="vizformer-", dir=None if short else "/tmp"))
    lock = os.open(made, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        made = made.rename(made.with_name(PREFIX + made.name.removeprefix("vizformer-")))
        _remove_left_behind(made.parent)
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)
        os.close(lock)


def _remove_left_behind(place: Path) -> None:
    """Removes this account's folders of servers that are no more."""
    for found in place.glob(f"{PREFIX}*"):
        with suppress(OSError):  # somebody else's, or locked, or gone
            lock = os.open(found, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                if os.fstat(lock).st_uid == os.getuid():
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(found, ignore_errors=True)
            finally:
                os.close(lock)


def _answers(place: Path) -> bool:
    """Whether a worker listens at its socket, which it does once it is ready."""
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(place)) == 0


def _listens(host: str, port: int) -> bool:
    """Whether somebody listens at the address: then nobody else can."""
    try:
        listening.require_free(host, port)
    except click.ClickException:
        return True
    return False


def _connections() -> int:
    """How many connections HAProxy may have: each takes two of the files that a process may open."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return haproxy.CONNECTIONS if most == resource.RLIM_INFINITY else max(50, min(haproxy.CONNECTIONS, most // 2 - 100))
