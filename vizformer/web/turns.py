"""Who runs next: a few runs at once, the others in the order in which they came.

One interpreter lock serves all readers.  Forty runs that share it all end late, and each makes the others slower; one after
the other, every one ends as early as it can.  A run that takes long does not hold the others up: after a while it no longer
counts.  What is measured: tests/benchmarks/README.md, classroom.
"""

import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

AT_ONCE = 2  # torch gives the interpreter back while it multiplies
LONG = 0.5  # seconds; most runs take a tenth of it


class Turns:
    """Turns of threads.

    Args:
        at_once: how many runs may go on at the same time.
        long: seconds after which a run is not one of them any more.
    """

    def __init__(self, at_once: int = AT_ONCE, long: float = LONG) -> None:
        self._at_once, self._long = at_once, long
        self._lock = threading.Lock()
        self._waiting: deque[threading.Condition] = deque()  # only the first one is ever woken
        self._running: dict[object, float] = {}  # since when
        self._watching: set[object] = set()  # of those: who only waits for what another thread computes
        self._mine = threading.local()

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Waits until it is this thread's turn; a thread that has one keeps it."""
        if getattr(self._mine, "ticket", None) is not None:
            yield
            return
        ticket = object()
        self._wait(ticket)
        self._mine.ticket = ticket
        try:
            yield
        finally:
            self._mine.ticket = None
            with self._lock:
                del self._running[ticket]
                self._wake_first()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """The run of this thread only waits for another thread's work: meanwhile it does not count for `idle`."""
        ticket = getattr(self._mine, "ticket", None)
        if ticket is None:
            yield
            return
        with self._lock:
            self._watching.add(ticket)
        try:
            yield
        finally:
            with self._lock:
                self._watching.discard(ticket)

    def idle(self) -> bool:
        """Whether no run goes on but those that are `watching`, and none waits."""
        with self._lock:
            return len(self._running) == len(self._watching) and not self._waiting

    def _wait(self, ticket: object) -> None:
        with self._lock:
            if self._waiting or self._until_there_is_room() > 0:
                called = threading.Condition(self._lock)
                self._waiting.append(called)
                try:
                    while self._waiting[0] is not called or self._until_there_is_room() > 0:
                        called.wait(self._until_there_is_room() if self._waiting[0] is called else None)
                finally:
                    self._waiting.remove(called)
            self._running[ticket] = time.monotonic()
            self._wake_first()

    def _wake_first(self) -> None:
        if self._waiting:
            self._waiting[0].notify()

    def _until_there_is_room(self) -> float:
        """Seconds until enough of the runs are long, if none ends before."""
        now = time.monotonic()
        left = sorted(self._long - (now - since) for since in self._running.values() if now - since < self._long)
        return left[len(left) - self._at_once] if len(left) >= self._at_once else 0.0


TURNS = Turns()
