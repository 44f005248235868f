"""The reading of a large model: told of, shared, ended by the last who leaves; small ones are read at once."""

import threading
from pathlib import Path

import pytest

from tests.checkpoints import folders as made
from tests.refs import stamped
from vizformer.checkpoints import load
from vizformer.checkpoints.tensors.matching import hearing_reads
from vizformer.errors import CheckpointError
from vizformer.web.catalogue import followed_work, model_cache, server_folder

pytest.importorskip("transformers")
SOON = 60.0  # seconds; only reached where a test fails


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made.gpt2(tmp_path / "mine")
    monkeypatch.setenv(server_folder.VARIABLE, str(tmp_path))
    monkeypatch.setattr(followed_work, "LARGE", 1)
    return tmp_path


def test_each_tensor_is_heard_twice(shelf: Path) -> None:
    heard: list[int] = []
    with hearing_reads(heard.append):
        opened = load(shelf / "mine")
    n_bytes = sum(p.numel() for p in opened.model.parameters()) * 4
    assert sum(heard) == 2 * n_bytes
    assert len(heard) == 2 * len(opened.report.with_fate("used"))


def test_what_is_followed_is_kept(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(followed_work, "LOOK", 0.0001)
    model, heard = stamped("models/mine"), list[tuple[int, int]]()
    assert followed_work.is_large(model)
    followed_work.follow(model, lambda *done: heard.append(done))
    assert model_cache.is_open(model)
    assert not followed_work.is_large(model)
    (total,) = {total for done, total in heard if done} or {2 * model_cache.glance(model).n_bytes}
    assert total == 2 * (shelf / "mine" / "model.safetensors").stat().st_size
    assert all(0 <= done <= total for done, _ in heard)


def test_the_last_who_leaves_ends_the_reading(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(followed_work, "LOOK", 0.005)
    model, reached, go = stamped("models/mine"), threading.Event(), threading.Event()
    count = followed_work.hearing_reads

    def held(heard):
        def hear(n_bytes):
            reached.set()
            assert go.wait(SOON)
            heard(n_bytes)

        return count(hear)

    monkeypatch.setattr(followed_work, "hearing_reads", held)

    class LeavesError(Exception):
        pass

    def leave(*_: int) -> None:
        if reached.is_set():
            raise LeavesError

    with pytest.raises(LeavesError):
        followed_work.follow(model, leave)
    (ending,) = followed_work.OPENINGS._running.values()
    go.set()
    assert ending.ended.wait(SOON)
    assert not model_cache.is_open(model)
    followed_work.follow(model, lambda *_: None)  # and whoever wants it again has it
    assert model_cache.is_open(model)


def test_what_does_not_open_is_not_waited_for(shelf: Path) -> None:
    file = shelf / "mine" / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-8])
    assert not followed_work.is_large(stamped("models/mine"))
    assert not followed_work.is_large(stamped("stories"))
    made.gpt2(shelf / "other")
    weights = made.tensors(shelf / "other")
    weights["transformer.ln_f.bias"][0] = float("nan")
    made.save_tensors(shelf / "other", weights)
    assert followed_work.is_large(stamped("models/other"))
    with pytest.raises(CheckpointError, match="NaN or infinite"):
        followed_work.follow(stamped("models/other"), lambda *_: None)
