"""Work that a page waits for in its own run: in a thread of its own, shared by all who need it, told of, and left.

A reader follows it (`Followed.follow`), is told how far it is, and can leave; when the last one leaves, it ends at the next
step.  What it makes is kept by whoever does it.  Work that a page does not wait for: `vizformer.web.catalogue.long_work`.
"""

import math
import os
import threading
from collections.abc import Callable, Hashable
from pathlib import Path

import torch

from vizformer.checkpoints.tensors.matching import hearing_reads
from vizformer.errors import VizformerError
from vizformer.web.catalogue import model_cache, sources
from vizformer.web.catalogue.long_work import is_roomy
from vizformer.web.catalogue.subject import Subject, listening, trace
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.turns import TURNS, Turns, Visitor, visitor

LOOK = 0.2  # seconds between two looks at how far it is
AT_ONCE = 2  # more of them wait, since each holds much memory
BEGUN = 4  # that pause while those of other visitors have their turn

Heard = Callable[[int, int], None]  # how much is done, of how much

LARGE = 128 * 2**20  # bytes of files from which on the reading is followed; less is there in the time of a picture

LOADAVG = Path("/proc/loadavg")  # proc(5)


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


# The reading of a large model's weights: in a thread of its own, told of in bytes, ended when the last reader leaves.
#
# It is followed as any other work (`Followed`).  What is read is kept as any open model.

OPENINGS = Followed()


def is_large(model: ModelRef) -> bool:
    """Whether the weights of this model are still to be read, and many; of one that does not open they are not."""
    if not model.is_from_elsewhere or model_cache.is_open(model):
        return False
    try:
        found = model_cache.glance(model)
    except VizformerError:
        return False
    return not found.problems and found.n_bytes >= LARGE


def follow(model: ModelRef, hear: Heard) -> None:
    """Returns when the model is open; `hear` is told the bytes that were read, of how many: each is read twice, to look for
    what is no number, and to be placed.
    """
    total, may_open = 2 * model_cache.glance(model).n_bytes, sources.may_open([model])

    def read(heard: Heard) -> None:
        done = 0

        def count(n_bytes: int) -> None:
            nonlocal done
            done = min(done + n_bytes, total)
            heard(done, total)

        with sources.lent(may_open), hearing_reads(count):
            model_cache.checkpoint(model)

    OPENINGS.follow(model, read, hear)


# A long forward, of a long text or a large model: in a thread of its own, shared by all who need it, on all cores
# while nobody else waits.
#
# A reader follows it (`Followed`) and is told how many layers are done. What it made is
# kept as the trace of its subject, as that of any text.
#
# torch has a number of threads for each thread of Python: more of them stall the readers beside it at every barrier
# (docs/decisions.md, "The web layer"), so that they are given only while this forward is alone, looked at layer by
# layer.
def others_that_run() -> int:
    """The number of other runnable threads on this machine; 0 where the system does not tell."""
    try:
        return int(LOADAVG.read_text().split()[3].partition("/")[0]) - 1
    except (OSError, ValueError, IndexError):
        return 0


class Forwards(Followed):
    """The forwards that go on now.

    Args:
        turns: says whether anybody else waits.
        cores: how many threads a forward has while nobody does.
        others: how many threads of the machine want a core beside this one.  Threads that share a core wait for each other
            at every step: with MPNet 72 tokens took 0.43 s on one thread, 0.24 on two, and 1.66 on two beside other work.
    """

    def __init__(
        self, turns: Turns = TURNS, cores: int | None = None, others: Callable[[], int] = others_that_run
    ) -> None:
        super().__init__(turns)
        self._cores, self._others = cores or os.cpu_count() or 1, others

    def follow_trace(self, subject: Subject, hear: Heard) -> None:
        """Returns when the trace of `subject` is there; `hear` is told layers done, of how many."""

        may_open = sources.may_open([subject])

        def forward(heard: Heard) -> None:
            with sources.lent(may_open), listening(heard):
                trace(subject)

        self.follow(subject, forward, hear)

    def threads(self) -> int:
        """How many threads a forward may have now: where it is the only one, however many readers follow it, one for each
        core that nothing else on this machine wants."""
        if self.wanted() > 1 or not self._turns.idle():
            return 1
        return max(1, self._cores - self._others())

    def steps(self) -> None:
        """Takes the threads that there are for it now, and leaves one for each thread that begins after it."""
        wanted = self.threads()
        if torch.get_num_threads() == wanted:  # (asking makes this thread's own number, which is then set)
            return
        torch.set_num_threads(wanted)
        after = threading.Thread(target=torch.set_num_threads, args=(1,))
        after.start()
        after.join()


FORWARDS = Forwards()
