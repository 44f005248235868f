"""Runs take turns: a few at once, in the order in which they came, and a long one holds nobody up."""

import threading
import time
from collections.abc import Callable

import pytest

from vizformer.web.turns import Turns

SOON = 60.0  # seconds; only reached where a test fails


class Runs:
    """Threads that take a turn and keep it until they are told to end."""

    def __init__(self, turns: Turns) -> None:
        self.turns = turns
        self.began: list[str] = []
        self.changed = threading.Condition()
        self.ends: dict[str, threading.Event] = {}
        self.threads: list[threading.Thread] = []

    def start(self, name: str) -> None:
        self.ends[name] = threading.Event()
        self.threads.append(threading.Thread(target=self._run, args=(name,)))
        self.threads[-1].start()

    def _run(self, name: str) -> None:
        with self.turns.turn():
            with self.changed:
                self.began.append(name)
                self.changed.notify_all()
            assert self.ends[name].wait(SOON)

    def until(self, said: Callable[[], bool]) -> None:
        with self.changed:
            assert self.changed.wait_for(said, SOON)

    def until_waiting(self, n: int) -> None:
        """Until n of them wait for their turn."""
        deadline = time.monotonic() + SOON
        while len(self.turns._waiting) != n:
            assert time.monotonic() < deadline
            threading.Event().wait(0.001)  # (nobody is told that somebody has begun to wait)

    def end(self) -> None:
        for event in self.ends.values():
            event.set()
        for thread in self.threads:
            thread.join(SOON)


def test_two_run_at_once_and_the_others_in_the_order_in_which_they_came():
    runs = Runs(Turns(at_once=2, long=SOON))
    for n, name in enumerate("ab", start=1):
        runs.start(name)
        runs.until(lambda n=n: len(runs.began) == n)
    for n, name in enumerate("cd", start=1):
        runs.start(name)
        runs.until_waiting(n)
    assert runs.began == ["a", "b"]
    runs.ends["b"].set()
    runs.until(lambda: runs.began == ["a", "b", "c"])
    runs.ends["a"].set()
    runs.until(lambda: runs.began == ["a", "b", "c", "d"])
    runs.end()


def test_a_run_that_is_long_holds_nobody_up():
    runs = Runs(Turns(at_once=1, long=0.05))
    runs.start("long")
    runs.until(lambda: runs.began == ["long"])
    runs.start("next")
    runs.until(lambda: runs.began == ["long", "next"])  # though the first one goes on
    runs.end()


def test_a_part_within_a_run_keeps_its_turn():
    turns = Turns(at_once=1, long=SOON)
    with turns.turn(), turns.turn():
        assert len(turns._running) == 1
    assert not turns._running


def test_a_run_that_fails_gives_its_turn_back():
    turns = Turns(at_once=1, long=SOON)
    with pytest.raises(RuntimeError), turns.turn():
        raise RuntimeError
    runs = Runs(turns)
    runs.start("next")
    runs.until(lambda: runs.began == ["next"])
    runs.end()
