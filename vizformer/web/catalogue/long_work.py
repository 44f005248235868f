"""Work of many runs of a model: in a thread of its own, shared by all who need it, and ended when nobody does any more.

A part of a page is not interrupted by what is pressed in it (Streamlit lets it come to its end first), so that work which
can be stopped must not be done there.  A reader asks for its state again and again (`look`); its result is kept in the cache
of its `Cached` function.
"""

import math
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vizformer.checkpoints.tensors.memory import available
from vizformer.context_value import held
from vizformer.web.catalogue import sources
from vizformer.web.catalogue.bounded_cache import Cached
from vizformer.web.turns import Turns, Visitor, visitor

AWAY = 75.0  # seconds without a look after which a reader counts as gone; a hidden tab looks once a minute
AT_ONCE = 2  # more of them wait
BEGUN = 40  # that pause while others have their turn: a class
ROOM = 2**30  # bytes of memory that are free where one more begins that pauses

HEARD: ContextVar[Callable[[int, int], None] | None] = ContextVar("heard", default=None)
"""Called with the progress of the work of this thread; an exception that it raises ends the work."""

Call = tuple[Any, ...]


def hearing(heard: Callable[[int, int], None]) -> AbstractContextManager[None]:
    """Has the work of this thread tell `heard` how far it is."""
    return held(HEARD, heard)


class _LeftError(Exception):
    """Raised in work that nobody waits for any more."""


@dataclass(eq=False)
class Work:
    """One call of a cached function: who looked at it when (`readers`), the runs `done` of how many, and its `error`."""

    function: Cached[..., Any]
    call: Call
    readers: dict[str, float] = field(default_factory=dict)
    done: tuple[int, int] = (0, 1)
    error: Exception | None = None
    ended: threading.Event = field(default_factory=threading.Event)


def is_roomy() -> bool:
    """Whether there is memory for one more work that pauses."""
    free = available()
    return free is None or free > ROOM


class LongWork:
    """The work that goes on now, the visitors in turn.  Safe to use from many threads."""

    def __init__(self, away: float = AWAY, at_once: int = AT_ONCE) -> None:
        self._away, self._places = away, Turns(at_once, math.inf, begun=BEGUN, roomy=is_roomy)
        self._lock = threading.Lock()
        self._known: dict[tuple[Cached[..., Any], Call], Work] = {}

    def begin(self, function: Cached[..., Any], call: Call, reader: str) -> Work:
        """Begins it for a reader, or joins those who want the same."""
        with self._lock:
            self._forget_failures()
            work = self._known.get((function, call))
            if work is None or work.ended.is_set() or not self._is_wanted(work):
                work = self._known[function, call] = Work(function, call)
                mine = (work, visitor(), sources.may_open(call))
                threading.Thread(target=self._run, args=mine, name="long work", daemon=True).start()
            work.readers[reader] = time.monotonic()
            return work

    def look(self, function: Cached[..., Any], call: Call, reader: str) -> Work | None:
        """The work of a reader who follows it; None for any other reader, and once over; raises what went wrong, once."""
        with self._lock:
            work = self._known.get((function, call))
            if work is None or reader not in work.readers:
                return None
            work.readers[reader] = time.monotonic()
            if not work.ended.is_set():
                return work
            error, work.error = work.error, None
            del work.readers[reader]
        if error is not None:
            raise error
        return None

    def leave(self, function: Cached[..., Any], call: Call, reader: str) -> None:
        """A reader wants it no more; the last one who leaves ends it, after the run that goes on."""
        with self._lock:
            if (work := self._known.get((function, call))) is not None:
                work.readers.pop(reader, None)

    def going(self) -> list[Work]:
        """The work that runs now or waits."""
        with self._lock:
            return [work for work in self._known.values() if not work.ended.is_set()]

    def _forget_failures(self) -> None:
        """Forgets ended work that no reader waits for; only failures are still kept at this point."""
        for key, work in list(self._known.items()):
            if work.ended.is_set() and not self._is_wanted(work):
                del self._known[key]

    def _is_wanted(self, work: Work) -> bool:
        return any(time.monotonic() - seen < self._away for seen in work.readers.values())

    def _run(self, work: Work, who: Visitor, models: Mapping[str, Path]) -> None:
        def heard(done: int, total: int) -> None:
            self._places.offer()
            with self._lock:
                wanted = self._is_wanted(work)
            if not wanted:
                raise _LeftError
            work.done = (done, total)

        try:
            with self._places.turn(who), hearing(heard), sources.lent(models):
                heard(0, 1)  # (it may have waited long)
                work.function(*work.call)
        except _LeftError:
            pass
        except Exception as error:  # said to whoever looks next
            work.error = error
        finally:
            work.ended.set()
            with self._lock:
                if work.error is None and self._known.get((work.function, work.call)) is work:
                    del self._known[work.function, work.call]


WORK = LongWork()
