"""Keeps processes running: one that ends is started again, and all are ended together."""

import ctypes
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import FrameType, TracebackType
from typing import Self

import click

QUICK = 10.0  # seconds; what ends sooner has not really run
LONGEST_PAUSE = 30.0  # seconds before the next try of what ends again and again
PATIENCE = 10.0  # seconds that a process has to end once it was told to
SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")

_prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None
_PR_SET_PDEATHSIG = 1  # linux/prctl.h


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


class _Asked:
    """A signal asked for the end of all services."""


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
