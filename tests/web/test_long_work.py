"""Work in a thread of its own: once for all who want it, ended when nobody does, done again when it is wanted again."""

import threading
from collections import namedtuple
from dataclasses import replace

import pytest

from vizformer.web.catalogue import sources, uploads
from vizformer.web.catalogue.bounded_cache import Cache, Cached
from vizformer.web.catalogue.long_work import HEARD, LongWork
from vizformer.web.link.model_ref import ModelRef

LONG = 60


class Counting:
    """Work of ten runs, each of which waits to be let through."""

    def __init__(self) -> None:
        self.begun = 0
        self.run = threading.Semaphore(0)
        self.at = threading.Semaphore(0)
        self.cached = Cached(self.compute, Cache(limit=lambda: 2**20))

    def compute(self, name: str) -> str:
        self.begun += 1
        for done in range(1, 11):
            self.at.release()
            assert self.run.acquire(timeout=LONG)
            if (heard := HEARD.get()) is not None:
                heard(done, 10)
        return name.upper()

    def let(self, runs: int) -> None:
        """Lets some runs through, and waits until the one after them has begun."""
        for _ in range(runs):
            self.run.release()
            assert self.at.acquire(timeout=LONG)


def test_it_is_done_once_for_all_who_want_it_and_kept() -> None:
    counting, work = Counting(), LongWork()
    first = work.begin(counting.cached, ("a",), "one")
    assert work.begin(counting.cached, ("a",), "two") is first
    assert counting.at.acquire(timeout=LONG)
    counting.let(4)
    assert work.look(counting.cached, ("a",), "one") is first
    assert first.done == (4, 10)
    assert work.look(counting.cached, ("a",), "three") is None  # who has not asked for it
    work.leave(counting.cached, ("a",), "one")
    counting.run.release(6)
    assert first.ended.wait(LONG)
    assert counting.begun == 1
    assert counting.cached.holds("a")
    assert counting.cached("a") == "A"
    assert work.look(counting.cached, ("a",), "two") is None
    assert work.going() == []


def test_the_last_one_who_leaves_ends_it_and_it_can_be_done_again() -> None:
    counting, work = Counting(), LongWork()
    first = work.begin(counting.cached, ("a",), "one")
    work.begin(counting.cached, ("a",), "two")
    assert counting.at.acquire(timeout=LONG)
    for reader in ("one", "two"):
        work.leave(counting.cached, ("a",), reader)
    counting.run.release()
    assert first.ended.wait(LONG)
    assert first.done[0] == 0
    assert not counting.cached.holds("a")
    assert work.look(counting.cached, ("a",), "one") is None
    again = work.begin(counting.cached, ("a",), "one")
    assert again is not first
    counting.run.release(10)
    assert again.ended.wait(LONG)
    assert counting.cached.holds("a")


def test_who_does_not_look_any_more_counts_as_gone() -> None:
    counting, work = Counting(), LongWork(away=0.0)
    first = work.begin(counting.cached, ("a",), "one")
    counting.run.release(10)
    assert first.ended.wait(LONG)
    assert not counting.cached.holds("a")


def test_what_goes_wrong_is_said_once() -> None:
    def wrong(name: str) -> str:
        raise ValueError(name)

    work, cached = LongWork(), Cached(wrong)
    going = work.begin(cached, ("a",), "one")
    assert going.ended.wait(LONG)
    with pytest.raises(ValueError, match="a"):
        work.look(cached, ("a",), "one")
    assert work.look(cached, ("a",), "one") is None
    assert work.begin(cached, ("a",), "one") is not going


def test_more_than_can_go_on_at_once_waits() -> None:
    counting, work = Counting(), LongWork(at_once=1)
    first = work.begin(counting.cached, ("a",), "one")
    assert counting.at.acquire(timeout=LONG)
    second = work.begin(counting.cached, ("b",), "one")
    assert work.going() == [first, second]
    work.leave(counting.cached, ("b",), "one")
    counting.run.release(10)
    for one in (first, second):
        assert one.ended.wait(LONG)
    assert counting.begun == 1
    assert not counting.cached.holds("b")


def test_what_went_wrong_is_forgotten_when_nobody_comes_back_for_it() -> None:
    def wrong(name: str) -> str:
        raise ValueError(name)

    work, cached = LongWork(), Cached(wrong)
    for name in "abc":
        assert work.begin(cached, (name,), "one").ended.wait(LONG)
        work.leave(cached, (name,), "one")
    last = work.begin(cached, ("d",), "one")
    assert last.ended.wait(LONG)
    assert list(work._known.values()) == [last]


@pytest.mark.parametrize("wrap", [lambda model: model, namedtuple("Subject", "model")])
def test_it_opens_what_the_session_may_open_that_began_it(monkeypatch, tmp_path, wrap) -> None:
    mine, model = threading.get_ident(), ModelRef("upload", "4f0c6ad2e9b10d37")
    monkeypatch.setattr(uploads, "locate", lambda model: tmp_path if threading.get_ident() == mine else None)
    found = []
    cached = Cached(lambda _: found.append(sources.folder(model)) or 0, Cache(limit=lambda: 2**20))
    going = LongWork().begin(cached, (wrap(model),), "one")
    assert going.ended.wait(LONG)
    assert going.error is None
    assert found == [tmp_path]
    monkeypatch.setattr(uploads, "locate", lambda model: None)
    going = LongWork().begin(cached, (wrap(replace(model, stamp="another session")),), "two")
    assert going.ended.wait(LONG)
    assert "An upload lives only in the session that made it" in str(going.error)
