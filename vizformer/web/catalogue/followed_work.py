"""Work that a page waits for in its own run: in a thread of its own, shared by all who need it, told of, and left.

A reader follows it (`Followed.follow`), is told how far it is, and can leave; when the last one leaves, it ends at the next
step.  What it makes is kept by whoever does it.  Work that a page does not wait for: `vizformer.web.catalogue.long_work`.
"""

import math
import threading
from collections.abc import Callable, Hashable

from vizformer.web.catalogue.long_work import is_roomy
from vizformer.web.turns import TURNS, Turns, Visitor, visitor

LOOK = 0.2  # seconds between two looks at how far it is
AT_ONCE = 2  # more of them wait, since each holds much memory
BEGUN = 4  # that pause while those of other visitors have their turn

Heard = Callable[[int, int], None]  # how much is done, of how much


class _LeftError(Exception):
    """Raised in work that nobody waits for any more."""


class Run:
    def __init__(self, key: Hashable, work: Callable[[Heard], object], kind: "Followed") -> None:
        self.key, self._work, self._kind = key, work, kind
        self.readers, self.left = 0, False
        self.done = (0, 1)
        self.error: Exception | None = None
        self.ended = threading.Event()

    def run(self, who: Visitor) -> None:
        try:
            with self._kind.places.turn(who):
                if not self.left:
                    self._kind.steps()
                    self._work(self._heard)
        except _LeftError:
            pass
        except Exception as error:  # said by everyone who follows it
            self.error = error
        finally:
            self._kind.end(self)

    def _heard(self, done: int, total: int) -> None:
        if self.left:
            raise _LeftError
        self.done = (done, total)
        self._kind.places.offer()
        self._kind.steps()


class Followed:
    """The work of one kind that goes on now."""

    def __init__(self, turns: Turns = TURNS) -> None:
        self._turns = turns
        self._lock = threading.Lock()
        self._running: dict[Hashable, Run] = {}
        self.places = Turns(AT_ONCE, math.inf, begun=BEGUN, roomy=is_roomy)

    def follow(self, key: Hashable, work: Callable[[Heard], object], hear: Heard) -> None:
        """Returns when `work`, which others may have begun under the same key, is done.

        `hear` is called while it goes on, several times a second; what it raises leaves the work.

        Raises:
            Exception: what went wrong in the work.
        """
        with self._lock:
            run = self._running.get(key)
            if run is None or run.left:
                run = self._running[key] = Run(key, work, self)
                threading.Thread(target=run.run, args=(visitor(),), name="followed work", daemon=True).start()
            run.readers += 1
        try:
            with self._turns.watching():
                while not run.ended.wait(LOOK):
                    hear(*run.done)
        finally:
            with self._lock:
                run.readers -= 1
                run.left = run.readers == 0
        if run.error is not None:
            raise run.error

    def wanted(self) -> int:
        """The number of running pieces of work that somebody follows."""
        with self._lock:
            return sum(not run.left for run in self._running.values())

    def steps(self) -> None:
        """Called in the thread of a piece of work before each of its steps."""

    def end(self, run: Run) -> None:
        """Forgets work that has ended."""
        with self._lock:
            if self._running.get(run.key) is run:
                del self._running[run.key]
        run.ended.set()
