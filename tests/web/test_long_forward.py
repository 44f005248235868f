"""The forward of a long text: once for all who follow it, ended by the last who leaves, with threads to spare or one."""

import math
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from vizformer.checkpoints import Checkpoint
from vizformer.errors import TraceError
from vizformer.messages import N_
from vizformer.web import turns as turns_module
from vizformer.web.catalogue import bounded_cache, followed_work, model_cache, subject_cache
from vizformer.web.catalogue import subject as subjects
from vizformer.web.catalogue.bounded_cache import Cache, Cached
from vizformer.web.catalogue.followed_work import Forwards
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.turns import Turns

SOON = 60.0  # seconds; only reached where a test fails
TEXT = Subject(ModelRef("bundled", "stories"), "A cat sat on a mat.", "")


class Layers:
    """A forward of four layers, each of which waits until it may go on."""

    def __init__(self) -> None:
        self.steps = threading.Semaphore(0)
        self.began, self.threads = 0, list[int]()
        self.cache = Cache(lambda: 10**6)
        self.cached = Cached(self.forward, self.cache)

    def forward(self, subject: Subject) -> str:
        self.began += 1
        heard = subjects._HEARD.get()
        assert heard is not None
        for layer in range(1, 5):
            assert self.steps.acquire(timeout=SOON)
            heard(layer, 4)
            self.threads.append(torch.get_num_threads())
        if subject.text == "refused":
            raise TraceError(N_("There is no token to look at: type at least one word."))
        return f"trace of {subject.text}"

    def release(self, n: int) -> None:
        for _ in range(n):
            self.steps.release()


@pytest.fixture
def layers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Layers]:
    found = Layers()
    monkeypatch.setattr(followed_work, "trace", found.cached)
    monkeypatch.setattr(followed_work, "LOOK", 0.005)
    yield found
    found.release(100)


def following(forwards: Forwards, hear: Callable[[int, int], None], subject: Subject = TEXT) -> threading.Thread:
    thread = threading.Thread(target=forwards.follow_trace, args=(subject, hear))
    thread.start()
    return thread


def test_two_who_want_the_same_hear_the_same_forward(layers: Layers) -> None:
    forwards, heard, two = Forwards(Turns(), 1), list[tuple[int, int]](), threading.Barrier(3)

    def first_time() -> Callable[[int, int], None]:
        met = []

        def hear(*done: int) -> None:
            heard.append(done)
            if not met:
                met.append(two.wait(SOON))

        return hear

    threads = [following(forwards, first_time()) for _ in range(2)]
    two.wait(SOON)
    layers.release(4)
    for thread in threads:
        thread.join(SOON)
    assert layers.began == 1
    assert layers.cached.holds(TEXT)
    assert {total for _, total in heard} <= {1, 4}
    assert not forwards._running


class LeavesError(Exception):
    """A reader goes elsewhere."""


def leave(layers: Layers, n: int) -> Callable[[int, int], None]:
    """Leaves once n forwards have begun: one that was left before it began is not begun."""

    def hear(*_: int) -> None:
        if layers.began == n:
            raise LeavesError

    return hear


def test_the_last_who_leaves_ends_it_at_the_next_layer(layers: Layers) -> None:
    forwards, stayed = Forwards(Turns(), 1), threading.Event()

    staying = following(forwards, lambda *_: stayed.set())
    assert stayed.wait(SOON)
    with pytest.raises(LeavesError):
        forwards.follow_trace(TEXT, leave(layers, 1))
    layers.release(4)  # it goes on for the one who stayed
    staying.join(SOON)
    assert layers.cached.holds(TEXT)
    other = Subject(TEXT.model, "another", "")
    with pytest.raises(LeavesError):
        forwards.follow_trace(other, leave(layers, 2))
    (ending,) = forwards._running.values()
    layers.release(1)
    assert ending.ended.wait(SOON)
    assert not layers.cached.holds(other)
    layers.release(4)
    forwards.follow_trace(other, lambda *_: None)  # and whoever wants it again has it
    assert layers.cached.holds(other)
    assert layers.began == 3


def test_what_nobody_wants_ends_without_waiting_for_another_turn(
    layers: Layers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns_module, "SLICE", 0.0)
    forwards, other = Forwards(Turns(), 1), Subject(TEXT.model, "another", "")
    forwards.places = Turns(1, math.inf, begun=1)

    with pytest.raises(LeavesError):
        forwards.follow_trace(TEXT, leave(layers, 1))
    (ending,) = forwards._running.values()
    waiting = threading.Event()
    staying = following(forwards, lambda *_: waiting.set(), other)
    assert waiting.wait(SOON)
    layers.release(1)
    assert ending.ended.wait(SOON)  # though the other one has not ended
    layers.release(4)
    staying.join(SOON)
    assert layers.cached.holds(other)


def test_what_went_wrong_is_told_to_whoever_follows(layers: Layers) -> None:
    layers.release(4)
    refused = Subject(TEXT.model, "refused", "")
    with pytest.raises(TraceError, match="no token to look at"):
        Forwards(Turns(), 1).follow_trace(refused, lambda *_: None)
    assert not layers.cached.holds(refused)


def test_more_texts_than_there_is_room_for_wait_until_one_has_ended(layers: Layers) -> None:
    forwards, heard = Forwards(Turns(), 1), [threading.Event() for _ in range(followed_work.AT_ONCE + 1)]
    texts = [Subject(TEXT.model, f"text {i}", "") for i in range(len(heard))]
    threads = [following(forwards, lambda *_, i=i: heard[i].set(), text) for i, text in enumerate(texts)]  # type: ignore[misc]
    assert all(event.wait(SOON) for event in heard)  # also the one that waits can be left
    assert layers.began <= followed_work.AT_ONCE
    layers.release(4 * len(texts))
    for thread in threads:
        thread.join(SOON)
    assert layers.began == len(texts)
    assert all(layers.cached.holds(text) for text in texts)


def test_it_has_all_threads_while_nobody_runs_but_those_who_follow_it(layers: Layers) -> None:
    turns = Turns(at_once=3, long=SOON)
    forwards, mine = Forwards(turns, 3, lambda: 0), torch.get_num_threads()

    def read(subject: Subject) -> None:
        with turns.turn():
            forwards.follow_trace(subject, lambda *_: None)

    def until(what: Callable[[], object]) -> None:
        while not what():
            threading.Event().wait(0.001)

    readers = [threading.Thread(target=read, args=(TEXT,)) for _ in range(2)]  # of the same text
    for reader in readers:
        reader.start()
    until(lambda: sum(turn.watching for turn in turns._running) == 2)
    layers.release(2)
    until(lambda: len(layers.threads) == 2)
    with turns.turn():  # somebody looks at another page
        layers.release(1)
        until(lambda: len(layers.threads) == 3)
    other = threading.Thread(target=read, args=(Subject(TEXT.model, "another", ""),))
    other.start()
    until(lambda: layers.began == 2)
    layers.release(5)
    for thread in (*readers, other):
        thread.join(SOON)
    assert layers.threads[1:3] == [3, 1]  # (the first number is from when they came)
    assert set(layers.threads[3:-1]) <= {1, 3}
    assert not turns._running
    assert torch.get_num_threads() == mine  # this thread has its own
    begun = list[int]()
    late = threading.Thread(target=lambda: begun.append(torch.get_num_threads()))
    late.start()
    late.join(SOON)
    assert begun == [1]


def test_it_leaves_cores_to_other_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [Forwards(Turns(), 4, lambda n=n: n).threads() for n in (0, 1, 3, 9)] == [4, 3, 1, 1]  # type: ignore[misc]
    monkeypatch.setattr(followed_work, "LOADAVG", tmp_path / "loadavg")
    assert followed_work.others_that_run() == 0
    (tmp_path / "loadavg").write_text("6.59 6.07 5.88 3/251 4711\n")
    assert followed_work.others_that_run() == 2


def test_a_trace_hears_every_layer_and_forgets_who_listened(monkeypatch: pytest.MonkeyPatch) -> None:
    heard = list[tuple[int, int]]()
    with subjects.listening(lambda *done: heard.append(done)):
        found = TEXT.checkpoint.trace(TEXT.text, heard=subjects._HEARD.get())
    total = TEXT.config.n_decoder_layers
    assert heard == [(done, total) for done in range(1, total + 1)]
    assert found.heard is None
    assert subjects._HEARD.get() is None


def test_what_is_made_of_a_trace_does_not_push_it_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(bounded_cache.VARIABLE, "100000")  # bytes: less than this trace takes, and than a head of it
    forwards = list[str]()
    forward = Checkpoint.trace
    monkeypatch.setattr(
        Checkpoint, "trace", lambda *args, **options: (forwards.append("one"), forward(*args, **options))[1]
    )
    subject = Subject(TEXT.model, "Nobody has read this text before. " * 4, "")
    for chosen in ((0, 0), (1, 1), (2, 3), (0, 0)):
        subject_cache.heads(subject, "decoder", chosen, "first")
    assert forwards == ["one"]


@pytest.mark.parametrize(
    ("text", "target", "long"), [(3, 3, False), (1200, 3, True), (3, 1200, True), (3, 9999, False)]
)
def test_a_long_target_is_followed_as_a_long_text_is(
    monkeypatch: pytest.MonkeyPatch, text: int, target: int, long: bool
) -> None:
    subject = Subject(ModelRef("bundled", "zh-en"), f"text {text}", f"target {target}")
    most = 4096

    def tokens(_: Checkpoint, given: str) -> tuple[int, ...]:
        if (n := int(given.split()[1])) > most:
            raise TraceError(N_("There is no token to look at: type at least one word."))
        return tuple(range(n))

    monkeypatch.setattr(Checkpoint, "encode", tokens)
    monkeypatch.setattr(Checkpoint, "encode_target", tokens)
    assert subject.is_long is long


@pytest.mark.parametrize(("source", "long"), [("upload", True), ("bundled", False)])
def test_a_large_model_of_a_reader_is_followed_at_few_tokens(
    monkeypatch: pytest.MonkeyPatch, source: str, long: bool
) -> None:
    loaded = SimpleNamespace(encode=lambda text: range(72))
    monkeypatch.setattr(model_cache, "checkpoint", lambda model: loaded)
    monkeypatch.setattr(model_cache, "shape", lambda model: SimpleNamespace(architecture="encoder-only"))
    monkeypatch.setattr(model_cache, "n_parameters", lambda model: 109_000_000)
    subject = Subject(ModelRef(source, "mpnet"), "Nobody has read this before.", "")
    assert subject.is_long is long
