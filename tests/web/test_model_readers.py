"""A model that was opened gives its memory back within ten seconds of its last reader, by a clock that the test turns."""

import asyncio
import gc
import weakref
from pathlib import Path

import pytest

from tests import tiny
from vizformer.checkpoints import save
from vizformer.web.catalogue import model_cache, server_folder, session_folders, sources
from vizformer.web.catalogue.bounded_cache import RESULTS, TRACES
from vizformer.web.catalogue.model_cache import GRACE, LATE, PERIOD, Readers
from vizformer.web.catalogue.subject import Subject
from vizformer.web.catalogue.subject_cache import layer_overview
from vizformer.web.link.model_ref import ModelRef

ONE, OTHER = ModelRef("models", "one"), ModelRef("models", "other")


class Room:
    """Sessions that come and go, and a clock."""

    def __init__(self) -> None:
        self.now, self.here = 0.0, {"a", "b"}
        self.readers = Readers(self.here.__contains__, lambda: self.now)

    def after(self, seconds: float) -> list[ModelRef]:
        self.now += seconds
        return self.readers.left()


def test_a_model_is_left_when_its_last_reader_has_been_away_for_some_seconds() -> None:
    room = Room()
    for session in ("a", "b"):
        room.readers.add(session, ONE)
    room.readers.add("a", OTHER)
    assert room.after(1000) == []
    room.here.remove("a")
    assert room.after(GRACE - 1) == []
    assert room.after(1) == [OTHER]  # b still reads the first
    room.here.remove("b")
    waited = PERIOD
    while ONE not in room.after(PERIOD):
        waited += PERIOD
    assert waited < 10


def test_who_comes_back_in_time_finds_the_model() -> None:
    room = Room()
    room.readers.add("a", ONE)
    room.here.remove("a")
    assert room.after(GRACE - 1) == []
    room.readers.add("b", ONE)  # the tab was loaded anew: it is another session
    assert room.after(LATE) == []


def test_what_is_read_to_its_end_for_nobody_is_found_later_and_forgotten_at_last() -> None:
    room = Room()
    room.readers.add("a", ONE)
    room.here.remove("a")
    assert room.after(GRACE) == room.after(GRACE) == [ONE]
    assert room.after(LATE) == []
    assert not room.readers._sessions


def test_bundled_models_and_those_that_no_session_asks_for_stay() -> None:
    room = Room()
    room.readers.add("gone", ModelRef("bundled", "zh-en"))
    room.readers.add("", ONE)
    assert room.after(GRACE) == []


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[ModelRef]:
    monkeypatch.setenv(server_folder.VARIABLE, str(tmp_path))
    for name in ("one", "other"):
        save(tiny.checkpoint("decoder-only"), tmp_path / name)
    return [sources.stamped(model) for model in (ONE, OTHER)]


def test_the_weights_and_all_that_was_computed_with_them_are_gone(
    shelf: list[ModelRef], monkeypatch: pytest.MonkeyPatch
) -> None:
    room = Room()
    monkeypatch.setattr(model_cache, "READERS", room.readers)
    weights = []
    for model, reader in zip(shelf, "ab", strict=True):
        monkeypatch.setattr(session_folders, "current", lambda reader=reader: reader)
        subject = Subject(model, "a cat", "")
        weights.append(weakref.ref(subject.checkpoint.model.embedding.weight))
        layer_overview(subject, "decoder", "none", 0)
    room.here.remove("a")
    model_cache.give_back(room.readers)
    assert all(map(model_cache.is_open, shelf))  # still within the grace
    room.now += GRACE
    model_cache.give_back(room.readers)
    gc.collect()
    assert [one() is None for one in weights] == [True, False]
    assert [model_cache.is_open(model) for model in shelf] == [False, True]
    for cache in (TRACES, RESULTS):
        kept = [key for key in cache._entries if model_cache._names(key, shelf)]
        assert kept
        assert not [key for key in kept if model_cache._names(key, shelf[:1])]
    assert Subject(shelf[0], "a cat", "").checkpoint.model.config  # who asks again opens it again


def test_the_server_looks_again_after_a_look_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    looked: list[int] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 3:
            raise asyncio.CancelledError

    def give_back() -> None:
        looked.append(1)
        raise RuntimeError("once")

    monkeypatch.setattr(model_cache, "give_back", give_back)
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(model_cache.attend(sleep))
    assert (slept, len(looked)) == ([PERIOD] * 3, 2)
