"""The forward of a long text: in a thread of its own, on all cores while nobody else waits, shared by all who need it.

A reader follows it (`follow`), is told how many layers are done, and can leave; when the last one leaves, it ends at the
next layer.  What it made is kept as the trace of its subject, as that of any text.

torch has a number of threads for each thread of Python: more of them stall the readers beside it at every barrier
(docs/decisions.md, "The web layer"), so that they are given only while this forward is alone, looked at layer by layer.
"""

import math
import os
import threading
from collections.abc import Callable

import torch

from vizformer.errors import VizformerError
from vizformer.web.catalogue.long_work import is_roomy
from vizformer.web.catalogue.subject import Subject, listening, trace
from vizformer.web.turns import TURNS, Turns, Visitor, visitor

LONG = 1000
"""Tokens of a text from which on its forward is followed; shorter ones are done in the time of a picture."""
LOOK = 0.2  # seconds between two looks at how far it is
AT_ONCE = 2  # forwards of long texts; more of them wait, since each holds a whole trace
BEGUN = 4  # that pause while those of other visitors have their turn

Heard = Callable[[int, int], None]  # layers done, of how many


class _LeftError(Exception):
    """Nobody wants this forward any more."""


class Forwards:
    """The forwards that go on now.

    Args:
        turns: says whether anybody else waits.
        cores: how many threads a forward has while nobody does.
    """

    def __init__(self, turns: Turns = TURNS, cores: int | None = None) -> None:
        self._turns, self._cores = turns, cores or os.cpu_count() or 1
        self._lock = threading.Lock()
        self._running: dict[Subject, _Forward] = {}
        self.places = Turns(AT_ONCE, math.inf, begun=BEGUN, roomy=is_roomy)

    def follow(self, subject: Subject, hear: Heard) -> None:
        """Returns when the trace of `subject` is there.

        `hear` is called while it goes on, several times a second; what it raises leaves the forward.

        Raises:
            Exception: what went wrong in the forward.
        """
        with self._lock:
            forward = self._running.get(subject)
            if forward is None or forward.left:
                forward = self._running[subject] = _Forward(subject, self)
                threading.Thread(target=forward.run, args=(visitor(),), name="long forward", daemon=True).start()
            forward.readers += 1
        try:
            with self._turns.watching():
                while not forward.ended.wait(LOOK):
                    hear(*forward.done)
        finally:
            with self._lock:
                forward.readers -= 1
                forward.left = forward.readers == 0
        if forward.error is not None:
            raise forward.error

    def threads(self) -> int:
        """How many threads a forward may have now: all where it is the only one, however many readers follow it."""
        with self._lock:
            others = sum(not forward.left for forward in self._running.values()) > 1
        return 1 if others or not self._turns.idle() else self._cores

    def end(self, forward: "_Forward") -> None:
        """Forgets a forward that has ended."""
        with self._lock:
            if self._running.get(forward.subject) is forward:
                del self._running[forward.subject]
        forward.ended.set()


class _Forward:
    def __init__(self, subject: Subject, forwards: Forwards) -> None:
        self.subject, self._forwards = subject, forwards
        self.readers, self.left = 0, False
        self.done = (0, 1)
        self.error: Exception | None = None
        self.ended = threading.Event()

    def run(self, who: Visitor) -> None:
        try:
            with self._forwards.places.turn(who):
                if not self.left:
                    self._share()
                    with listening(self._heard):
                        trace(self.subject)
        except _LeftError:
            pass
        except Exception as error:  # said by everyone who follows it
            self.error = error
        finally:
            self._forwards.end(self)

    def _heard(self, done: int, total: int) -> None:
        if self.left:
            raise _LeftError
        self.done = (done, total)
        self._forwards.places.offer()
        self._share()

    def _share(self) -> None:
        """Takes the threads that there are for it now, and leaves one for each thread that begins after it."""
        wanted = self._forwards.threads()
        if torch.get_num_threads() == wanted:  # (asking makes this thread's own number, which is then set)
            return
        torch.set_num_threads(wanted)
        after = threading.Thread(target=torch.set_num_threads, args=(1,))
        after.start()
        after.join()


FORWARDS = Forwards()


def is_long(subject: Subject) -> bool:
    """Whether the forward of this subject is still to be done, and long: its text, or the target that was given."""
    if trace.holds(subject):
        return False
    try:
        loaded = subject.checkpoint
        if len(loaded.encode(subject.text)) > LONG:
            return True
        given = subject.config.architecture == "encoder-decoder" and subject.target.strip()
        return bool(given) and len(loaded.encode_target(subject.target)) > LONG
    except VizformerError:
        return False
