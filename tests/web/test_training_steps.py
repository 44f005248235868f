"""Steps of trainings as models on disk: made when one is asked for, and not more of them than there is room for."""

import os
import shutil

import pytest

import vizformer as vf
from vizformer.training.runs import Run
from vizformer.web.catalogue import training_steps, trainings


@pytest.fixture
def copied(tmp_path, monkeypatch):
    """A training of this server with the steps of the bundled one; the models of its steps go into a new folder."""
    (tmp_path / "models").mkdir()
    monkeypatch.setattr(training_steps, "root", lambda: tmp_path / "models")
    monkeypatch.setattr(trainings, "root", lambda: tmp_path)
    shutil.copytree(trainings.example(), tmp_path / "train-0123456789")
    return "train-0123456789"


def made():
    return {folder.name for folder in training_steps.root().iterdir()}


def test_a_step_whose_weights_are_there_opens_though_no_line_says_so(copied):
    first = training_steps.kept_steps(copied)[0]
    (trainings.root() / copied / "progress.jsonl").write_text('{"kept": ', encoding="utf-8")
    opened = vf.load(training_steps.folder(copied, first))
    assert opened.key == Run(trainings.example()).after(first).key
    assert training_steps.folder(copied, 356) is None
    with pytest.raises(ValueError, match="no weights are kept after step"):
        Run(trainings.example()).after(356)


def test_the_steps_asked_for_least_recently_are_removed(copied, monkeypatch):
    monkeypatch.setattr(training_steps, "MOST", 2)
    one, two, three = training_steps.kept_steps(copied)[:3]
    for age, step in ((20, one), (10, two)):
        found = training_steps.folder(copied, step)
        os.utime(found, ns=(0, found.stat().st_mtime_ns - age * 10**9))
    training_steps.folder(copied, one)  # asked for once more
    training_steps.folder(copied, three)
    assert made() == {f"{copied}@{one}", f"{copied}@{three}"}


def test_the_steps_of_a_training_that_is_gone_are_removed(copied):
    first = training_steps.kept_steps(copied)[0]
    training_steps.folder(copied, first)
    shutil.rmtree(trainings.root() / copied)
    assert training_steps.folder(copied, first) is None
    example = trainings.example().name
    training_steps.folder(example, first)
    assert made() == {f"{example}@{first}"}


def test_nothing_stays_of_a_step_that_could_not_be_written(copied, monkeypatch):
    def full(run, step, folder):
        (folder / "config.json").write_text("{", encoding="utf-8")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Run, "save_step", full)
    with pytest.raises(OSError, match="No space"):
        training_steps.folder(copied, training_steps.kept_steps(copied)[0])
    assert made() == set()
