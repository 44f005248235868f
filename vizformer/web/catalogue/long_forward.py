"""The forward of a long text: in a thread of its own, on all cores while nobody else waits, shared by all who need it.

A reader follows it and is told how many layers are done (`vizformer.web.catalogue.followed_work`).  What it made is kept
as the trace of its subject, as that of any text.

torch has a number of threads for each thread of Python: more of them stall the readers beside it at every barrier
(docs/decisions.md, "The web layer"), so that they are given only while this forward is alone, looked at layer by layer.
"""

import os
import threading

import torch

from vizformer.errors import VizformerError
from vizformer.web.catalogue.followed_work import Followed, Heard
from vizformer.web.catalogue.subject import Subject, listening, trace
from vizformer.web.turns import TURNS, Turns

LONG = 1000
"""Tokens of a text from which on its forward is followed; shorter ones are done in the time of a picture."""


class Forwards(Followed):
    """The forwards that go on now.

    Args:
        turns: says whether anybody else waits.
        cores: how many threads a forward has while nobody does.
    """

    def __init__(self, turns: Turns = TURNS, cores: int | None = None) -> None:
        super().__init__(turns)
        self._cores = cores or os.cpu_count() or 1

    def follow_trace(self, subject: Subject, hear: Heard) -> None:
        """Returns when the trace of `subject` is there; `hear` is told layers done, of how many."""

        def forward(heard: Heard) -> None:
            with listening(heard):
                trace(subject)

        self.follow(subject, forward, hear)

    def threads(self) -> int:
        """How many threads a forward may have now: all where it is the only one, however many readers follow it."""
        return 1 if self.wanted() > 1 or not self._turns.idle() else self._cores

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
        if len(loaded.encode(subject.text)) > LONG:
            return True
        given = subject.config.architecture == "encoder-decoder" and subject.target.strip()
        return bool(given) and len(loaded.encode_target(subject.target)) > LONG
    except VizformerError:
        return False
