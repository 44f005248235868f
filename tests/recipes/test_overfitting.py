"""The small trainings that overfit: the bundled ones are of the recipe, and show what the lesson says."""

import json
from dataclasses import asdict, replace

import pytest

from recipes import overfitting
from recipes.overfitting import RECIPE
from vizformer.assets import asset

BUNDLED = json.loads(asset("lessons", "training", "overfitting.json").read_text(encoding="utf-8"))


def test_the_bundled_measurement_is_of_this_recipe() -> None:
    assert BUNDLED["recipe"] == json.loads(json.dumps(asdict(RECIPE)))
    assert [run["p"] for run in BUNDLED["runs"]] == list(RECIPE.rates)
    assert all(len(run["read"]) == len(run["held_out"]) == len(BUNDLED["updates"]) for run in BUNDLED["runs"])


def test_without_dropout_the_validation_loss_turns_and_with_it_the_gap_is_smaller() -> None:
    gaps = [run["held_out"][-1] - run["read"][-1] for run in BUNDLED["runs"]]
    assert gaps == sorted(gaps, reverse=True)
    without = BUNDLED["runs"][0]
    assert without["read"][-1] < 0.5 < min(without["held_out"]) < without["held_out"][-1] - 1
    assert without["held_out"].index(min(without["held_out"])) < len(BUNDLED["updates"]) / 2


def test_a_short_training_measures_both_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overfitting, "TEXT", replace(overfitting.TEXT, d_model=16, context=16))
    short = replace(RECIPE, letters=128, layers=1, updates=4, measured_every=2, rows=2, rates=(0.0, 0.3))
    found = overfitting.measure(short, say=lambda line: None)
    assert found["updates"] == [2, 4]
    first, second = found["runs"]
    assert first["read"] != second["read"]  # p alone differs
    assert len(first["held_out"]) == 2
