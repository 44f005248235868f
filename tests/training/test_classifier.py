"""The classifier on top of an encoder: its sentences, its interval, what is trained and what is not, and its process."""

import json
import os
from collections import Counter
from pathlib import Path

import pytest
import torch

from vizformer.assets import asset
from vizformer.checkpoints import Checkpoint, load
from vizformer.jobs.worker import STOP, WATCHED
from vizformer.training.classifier import (
    BODIES,
    EPOCHS,
    MODEL,
    SETTINGS,
    TOPICS,
    Epoch,
    features,
    ids_of,
    interval,
    main,
    probabilities,
    read,
    sentences,
    train,
)

LANGUAGES = ("en", "zh_CN")
BUNDLED = json.loads(asset("lessons", "training", "classifier.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def cloze() -> Checkpoint:
    return load(MODEL)


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_held_out_sentence_is_learned_from(language: str) -> None:
    learned, asked = (sentences(language, held_out=held_out) for held_out in (False, True))
    assert not {text for text, __ in learned} & {text for text, __ in asked}
    assert Counter(topic for __, topic in learned) == dict.fromkeys(range(len(TOPICS)), 25)
    assert Counter(topic for __, topic in asked) == dict.fromkeys(range(len(TOPICS)), 10)


def test_the_interval_is_wilsons() -> None:
    assert interval(0, 10) == pytest.approx((0.0, 0.2775), abs=1e-4)  # z^2 / (n + z^2)
    low, high = interval(27, 40)
    for bound in (low, high):  # where 27 of 40 lie 1.96 standard errors from the accuracy
        assert abs(27 / 40 - bound) == pytest.approx(1.96 * (bound * (1 - bound) / 40) ** 0.5)


@pytest.mark.parametrize("body", BODIES)
def test_padding_is_not_read(cloze: Checkpoint, body: str) -> None:
    texts = ("The dog ran.", "The dog ran after the cat and the bird in the garden.")
    together = features(body, cloze.model, ids_of(cloze, texts))  # type: ignore[arg-type]
    alone = features(body, cloze.model, ids_of(cloze, texts[:1]))  # type: ignore[arg-type]
    torch.testing.assert_close(together[:1], alone, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("body", ["words", "frozen"])
def test_the_bundled_curves_are_those_of_the_training(cloze: Checkpoint, language: str, body: str) -> None:
    found = [reached.epoch for reached in train(body, cloze, language)]  # type: ignore[arg-type]
    known = [Epoch(**one) for one in BUNDLED[language] if one["body"] == body]
    assert [one.epoch for one in found] == list(range(EPOCHS + 1))
    # Sums in another order on another processor.
    assert [one.loss for one in found] == pytest.approx([one.loss for one in known], rel=0.05)


def test_what_the_lesson_says_of_the_curves_holds() -> None:
    last = {(language, one["body"]): one for language in LANGUAGES for one in BUNDLED[language]}
    for language in LANGUAGES:
        assert last[language, "tuned"]["loss"] < 0.001
        held_out = [one["held_out"] for one in BUNDLED[language] if one["body"] == "tuned"]
        assert held_out[-1] > 1.2 * min(held_out)  # the loss on held-out sentences rises again
    assert last["en", "frozen"]["right"] > last["en", "words"]["right"]
    assert abs(last["zh_CN", "frozen"]["right"] - last["zh_CN", "words"]["right"]) <= 2
    (low, __), (__, high) = (interval(last["en", body]["right"], 40) for body in ("frozen", "words"))
    assert low < high


def test_fine_tuning_leaves_the_bundled_weights_alone(cloze: Checkpoint) -> None:
    before = [one.clone() for one in cloze.model.parameters()]
    steps = 0

    def stop() -> bool:
        nonlocal steps
        steps += 1
        return steps == 3

    (first,) = train("tuned", cloze, "en", stop)
    after = list(cloze.model.parameters())
    assert all(torch.equal(one, two) for one, two in zip(before, after, strict=True))
    assert any(not torch.equal(one, two) for one, two in zip(after, first.model.parameters(), strict=True))


def begin(folder: Path) -> None:
    folder.mkdir()
    (folder / SETTINGS).write_text(json.dumps({"language": "en"}))
    (folder / WATCHED).touch()


@pytest.mark.slow
@pytest.mark.sweep
def test_the_process_trains_all_three_and_keeps_what_sorts_a_sentence(tmp_path: Path) -> None:
    threads = torch.get_num_threads()
    try:
        begin(tmp_path / "whole")
        assert main(tmp_path / "whole", os.getppid()) == 0
    finally:
        torch.set_num_threads(threads)
    found, ending = read(tmp_path / "whole")
    assert ending == "done"
    assert Counter(one.body for one in found) == dict.fromkeys(BODIES, EPOCHS + 1)
    said = probabilities(tmp_path / "whole", "The dog and the cat ran after a mouse.")
    assert list(said) == list(BODIES)
    for values in said.values():
        assert sum(values) == pytest.approx(1)
        assert values.index(max(values)) == TOPICS.index("animals")


def test_a_process_that_is_told_to_stop_says_so_and_keeps_no_model(tmp_path: Path) -> None:
    threads = torch.get_num_threads()
    try:
        begin(tmp_path / "stopped")
        (tmp_path / "stopped" / STOP).touch()
        assert main(tmp_path / "stopped", os.getppid()) == 0
    finally:
        torch.set_num_threads(threads)
    found, ending = read(tmp_path / "stopped")
    assert ending == "stopped"
    assert all(one.epoch == 0 for one in found)
    assert not (tmp_path / "stopped" / "model").exists()
