"""A long forward, of a long text or a large model: in a thread of its own, shared by all who need it, on all cores while
nobody else waits.

A reader follows it and is told how many layers are done (`vizformer.web.catalogue.followed_work`).  What it made is kept
as the trace of its subject, as that of any text.

torch has a number of threads for each thread of Python: more of them stall the readers beside it at every barrier
(docs/decisions.md, "The web layer"), so that they are given only while this forward is alone, looked at layer by layer.
"""

import os
import threading
from collections.abc import Callable
from pathlib import Path

import torch

from vizformer.errors import VizformerError
from vizformer.web.catalogue import model_cache, sources
from vizformer.web.catalogue.followed_work import Followed, Heard
from vizformer.web.catalogue.subject import Subject, listening, trace
from vizformer.web.turns import TURNS, Turns

LOADAVG = Path("/proc/loadavg")  # proc(5)
LONG = 1000  # tokens of a text from which on its forward is followed; shorter ones are done in the time of a picture,
MUCH = 4e9  # or take so many multiplications: a tenth of a second of one core


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


def is_long(subject: Subject) -> bool:
    """Whether the forward of this subject is still to be done, and long: its text, or the target that was given."""
    if trace.holds(subject):
        return False
    try:
        loaded = subject.checkpoint
        n = len(loaded.encode(subject.text))
        if subject.shape.architecture == "encoder-decoder" and subject.target.strip():
            n = max(n, len(loaded.encode_target(subject.target)))
        return n > LONG or (subject.model.is_from_elsewhere and n * model_cache.n_parameters(subject.model) > MUCH)
    except VizformerError:
        return False
