"""The small translators of the lesson Training: the bundled measurement is of this recipe, and a short one runs."""

import json
import math
from dataclasses import asdict
from pathlib import Path

import pytest
import torch

from recipes import smoothing
from recipes.smoothing import RECIPE, SMOOTHINGS, SmoothingRecipe
from tests.recipes.animals import animals_in_a_row
from vizformer.assets import asset
from vizformer.model import Transformer
from vizformer.training.loss import smoothing_floor

BUNDLED = json.loads(asset("lessons", "training", "smoothing.json").read_text(encoding="utf-8"))


def test_the_bundled_measurement_is_of_this_recipe() -> None:
    assert BUNDLED["recipe"] == json.loads(json.dumps(asdict(RECIPE)))
    runs = [(run["seed"], run["smoothing"]) for run in BUNDLED["runs"]]
    assert runs == [(seed, eps) for seed in RECIPE.seeds for eps in SMOOTHINGS]
    assert BUNDLED["floor"] == pytest.approx(smoothing_floor(RECIPE.vocab_size, 0.1), abs=1e-4)
    for run in BUNDLED["runs"]:
        assert [one["step"] for one in run["curve"]] == list(range(300, RECIPE.updates + 1, RECIPE.measured_every))
        assert run["last"]["loss"] == run["curve"][-1]["loss"]


def test_what_the_lesson_says_of_the_trainings_holds() -> None:
    last = {(run["seed"], run["smoothing"]): run["last"] for run in BUNDLED["runs"]}
    for seed in RECIPE.seeds:
        assert last[seed, 0.1]["loss"] > last[seed, 0.0]["loss"]  # perplexity is worse,
        assert last[seed, 0.1]["sure"] < last[seed, 0.0]["sure"]  # since the model is less sure


TINY = SmoothingRecipe(
    vocab_size=300,
    model=dict(RECIPE.model, d_model=8, n_heads=2, d_ff=16, n_encoder_layers=1, n_decoder_layers=1),
    updates=5,
    measured_every=2,
    seeds=(3,),
)


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return animals_in_a_row(tmp_path, monkeypatch, smoothing)


@torch.no_grad()
def test_marks_are_of_the_right_tokens_alone(data: Path) -> None:
    prepared = smoothing.prepare(TINY.data, data)
    torch.manual_seed(0)
    model = Transformer(smoothing.config_of(TINY, prepared)).eval()
    pairs = prepared.encode(prepared.split.valid)
    found = smoothing.held_out_marks(model, pairs)
    losses, right = [], []
    for source, target in pairs:
        logits = model(torch.tensor([source]), torch.tensor([target[:-1]]))[0].log_softmax(-1)
        losses += [-float(row[id]) for row, id in zip(logits, target[1:], strict=True)]
        right += [int(row.argmax()) == id for row, id in zip(logits, target[1:], strict=True)]
    assert found["loss"] == pytest.approx(sum(losses) / len(losses), abs=1e-4)
    assert found["right"] == pytest.approx(sum(right) / len(right), abs=1e-4)
    assert 1 / 300 < found["sure"] < 1


@pytest.mark.sweep
def test_a_short_training_gives_both(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sacrebleu")
    found = smoothing.measure(data, TINY, say=lambda line: None)
    assert [(run["smoothing"], run["seed"]) for run in found["runs"]] == [(0.0, 3), (0.1, 3)]
    for run in found["runs"]:
        assert [one["step"] for one in run["curve"]] == [2, 4]
        assert math.isfinite(run["last"]["loss"])
