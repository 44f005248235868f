"""Runs take turns: a few at once, the visitors one after the other, and a long one holds nobody up."""

import math
import threading
import time
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from vizformer.web import turns as turns_module
from vizformer.web.turns import MOST_FILES, TooManyFilesError, Turns, Visitor, in_turn, network, watching

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


# --- visitors ---------------------------------------------------------------------------------------------------------


def named(name: str) -> Visitor:
    """A visitor by name; what stands before a stroke is the address, and a question mark says that there is no cookie."""
    return Visitor(name, name.partition("/")[0] if "/" in name else "", "?" in name)


class Ordered(Runs):
    """Runs of visitors, one at a time."""

    def __init__(self, **options: object) -> None:
        super().__init__(Turns(**{"at_once": 1, "long": math.inf, **options}))  # type: ignore[arg-type]

    def _run(self, name: str) -> None:
        with self.turns.turn(named(name.partition(":")[0])):
            with self.changed:
                self.began.append(name)
                self.changed.notify_all()
            assert self.ends[name].wait(SOON)

    def ask(self, *names: str) -> None:
        """Has runs wait, one after the other."""
        for name in names:
            before = len(self.turns._waiting)
            self.start(name)
            self.until_waiting(before + 1)

    def follow(self) -> list[str]:
        """Ends each run that has begun, until none is left; the order in which they began."""
        for n in range(1, len(self.ends) + 1):
            self.until(lambda n=n: len(self.began) >= n)
            self.ends[self.began[n - 1]].set()
        self.end()
        return self.began


def test_a_hundred_runs_of_one_visitor_hold_up_nobody_else():
    runs = Ordered()
    runs.start("many:0")
    runs.until(lambda: runs.began == ["many:0"])
    runs.ask(*(f"many:{n}" for n in range(1, 100)), "other")
    assert runs.follow()[:2] == ["many:0", "other"]


def test_the_next_turn_goes_to_the_visitor_whose_last_one_ended_longest_ago():
    runs = Ordered()
    runs.start("a:1")
    runs.until(lambda: runs.began == ["a:1"])
    runs.ask("b:1", "b:2", "a:2", "c:1", "b:3", "c:2", "a:3")
    assert runs.follow() == ["a:1", "b:1", "c:1", "a:2", "b:2", "c:2", "a:3", "b:3"]


def test_sessions_without_a_cookie_are_one_visitor_while_one_with_a_cookie_waits_at_their_address():
    runs = Ordered()
    runs.start("far/?0")
    runs.until(lambda: runs.began == ["far/?0"])
    runs.ask(*(f"far/?{n}" for n in range(1, 100)), "far/a:1", "far/b:1", "far/a:2")
    assert runs.follow()[:6] == ["far/?0", "far/a:1", "far/b:1", "far/?1", "far/a:2", "far/?2"]


def test_sessions_without_a_cookie_have_all_places_of_a_school_that_has_none():
    runs = Ordered(at_once=2)
    for n, name in enumerate(("far/?0", "far/?1"), start=1):
        runs.start(name)
        runs.until(lambda n=n: len(runs.began) == n)
    runs.ask(*(f"far/?{n}" for n in range(2, 40)))
    assert runs.follow() == [f"far/?{n}" for n in range(40)]


def test_addresses_have_the_places_in_turn_and_one_alone_has_them_all():
    runs = Ordered(at_once=2)
    for n, name in enumerate(("far/0", "far/1"), start=1):  # a school: another visitor each
        runs.start(name)
        runs.until(lambda n=n: len(runs.began) == n)
    runs.ask(*(f"far/{n}" for n in range(2, 40)), "home/a", "home/b")
    runs.ends["far/0"].set()
    runs.until(lambda: len(runs.began) == 3)
    runs.ends["far/1"].set()
    runs.until(lambda: len(runs.began) == 4)
    assert runs.began[2:] == ["home/a", "far/2"]
    assert len(runs.follow()) == 42


def test_an_address_has_a_bounded_number_of_long_runs_and_others_begin_beside_them():
    runs = Ordered(long=0.0, most=3)
    for n in range(3):
        runs.start(f"far/{n}")
        runs.until(lambda n=n: len(runs.began) == n + 1)
    runs.ask("far/3")
    runs.start("home/a")
    runs.until(lambda: runs.began[3:] == ["home/a"])
    runs.ends["far/1"].set()
    runs.until(lambda: runs.began[4:] == ["far/3"])
    runs.end()


def test_work_that_pauses_lets_others_begin_and_goes_on_later(monkeypatch):
    monkeypatch.setattr(turns_module, "SLICE", 0.0)
    turns, said = Turns(at_once=1, long=math.inf, begun=1), list[str]()
    other_waits, third_waits = threading.Event(), threading.Event()

    def work(name: str, until: threading.Event) -> None:
        with turns.turn(named(name)):
            said.append(f"{name} begins")
            assert until.wait(SOON)
            turns.offer()
            said.append(f"{name} ends")

    names = {"one": other_waits, "two": third_waits, "three": third_waits}
    threads = [threading.Thread(target=work, args=each) for each in names.items()]
    for n, thread in enumerate(threads):
        thread.start()
        while len(turns._waiting) + len(turns._running) < n + 1:
            threading.Event().wait(0.001)
    other_waits.set()
    third_waits.set()
    for thread in threads:
        thread.join(SOON)
    # Only one may pause: the third begins when the first has gone on and ended.
    assert said == ["one begins", "two begins", "one ends", "three begins", "two ends", "three ends"]


def test_who_waits_for_what_another_computes_gives_its_place_to_it():
    turns, computed = Turns(at_once=1, long=math.inf), threading.Event()

    def wait() -> None:
        with turns.turn(named("waits")), watching():
            assert computed.wait(SOON)

    waits = threading.Thread(target=wait)
    waits.start()
    while not any(turn.watching for turn in turns._running):
        threading.Event().wait(0.001)
    with turns.turn(named("computes")):
        computed.set()
    waits.join(SOON)
    assert not turns._running


@pytest.mark.parametrize(
    ("address", "one"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),  # as a server that listens to both kinds of addresses sees it
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::1", ""),
        ("127.0.0.1", ""),
        ("<b>", ""),
        (None, ""),
    ],
)
def test_an_address_is_what_one_visitor_may_have_of_them(address, one):
    assert network(address) == one


def test_it_is_quiet_some_time_after_the_last_turn_has_ended(monkeypatch) -> None:
    now = [100.0]
    monkeypatch.setattr(turns_module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    turns = Turns()
    assert turns.idle(5.0)  # nobody has had one
    for name in ("one", "two", "one"):
        with turns.turn(Visitor(name)):
            assert not turns.idle()
        now[0] += 4.0
    assert turns.idle()
    assert not turns.idle(5.0)
    now[0] += 1.0
    assert turns.idle(5.0)


def test_a_file_is_made_in_a_turn_and_one_visitor_asks_for_a_few_at_once(monkeypatch):
    turns = Turns(at_once=1, long=SOON)
    monkeypatch.setattr(turns_module, "TURNS", turns)
    runs = Runs(turns)
    runs.start("page")
    runs.until(lambda: runs.began == ["page"])
    monkeypatch.setattr(turns_module, "visitor", lambda: Visitor("hostile"))
    made: list[bytes] = []
    make = in_turn(lambda: b"file")
    threads = [threading.Thread(target=lambda: made.append(make())) for _ in range(MOST_FILES)]
    for thread in threads:
        thread.start()
    runs.until_waiting(MOST_FILES)
    assert not made  # the page has the turn
    with pytest.raises(TooManyFilesError):
        make()
    monkeypatch.setattr(turns_module, "visitor", lambda: Visitor("other"))
    other = in_turn(lambda: b"other")
    threads.append(threading.Thread(target=lambda: made.append(other())))
    threads[-1].start()
    runs.until_waiting(MOST_FILES + 1)  # nobody else is refused
    runs.end()
    for thread in threads:
        thread.join(SOON)
    assert sorted(made) == [b"file"] * MOST_FILES + [b"other"]
    assert make() == b"file"  # and when those are made, more may be
