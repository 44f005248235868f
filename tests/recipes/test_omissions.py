"""The small trainings of the lesson Training with one thing left out: the bundled curves are those of the recipe."""

import json
import math
from dataclasses import asdict, replace
from typing import get_args

import numpy as np
import pytest
import torch

from recipes import omissions
from recipes.omissions import LEFT_OUT, RECIPE, LeftOut
from vizformer.assets import asset
from vizformer.model.forward_pass import ForwardPass

BUNDLED = json.loads(asset("lessons", "training", "left_out.json").read_text(encoding="utf-8"))


def test_the_bundled_curves_are_of_this_recipe() -> None:
    assert BUNDLED["recipe"] == json.loads(json.dumps(asdict(RECIPE)))
    assert BUNDLED["guessing"] == pytest.approx(math.log(17), abs=1e-4)  # sixteen letters and the end mark
    assert BUNDLED["blind"] == pytest.approx(5 / 6 * math.log(16), abs=1e-4)  # five letters in the mean, and the end
    assert tuple(BUNDLED["loss"]) == LEFT_OUT == get_args(LeftOut)
    points = RECIPE.updates // omissions.AVERAGED
    for curves in BUNDLED["loss"].values():
        assert [len(curve) for curve in curves] == [points] * len(RECIPE.seeds)
    assert len(BUNDLED["updates"]) == points


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", LEFT_OUT)
def test_the_bundled_curves_begin_as_the_training_does(name: LeftOut) -> None:
    short = replace(RECIPE, updates=omissions.AVERAGED)
    losses = omissions.train_losses(name, 1, short)
    # Sums in another order on another processor: a few updates carry that far.
    assert np.mean(losses) == pytest.approx(BUNDLED["loss"][name][1][0], rel=0.02)


def test_what_the_lesson_says_of_the_curves_holds() -> None:
    last = {name: [curve[-1] for curve in curves] for name, curves in BUNDLED["loss"].items()}
    assert max(last["nothing"]) < 0.2
    assert max(last["scaling"]) < min(last["nothing"])
    assert max(last["warm-up"]) > 0.8 * BUNDLED["guessing"]  # one seed never begins, another one is not hurt
    assert min(last["warm-up"]) < max(last["nothing"])
    assert max(last["residual"]) < BUNDLED["blind"]
    assert min(last["residual"]) > 10 * max(last["nothing"])


def test_all_begin_with_the_same_weights_and_only_the_sums_are_gone() -> None:
    models = {}
    for name in LEFT_OUT:
        torch.manual_seed(3)
        models[name] = omissions.build(name, RECIPE.config)
    usual = models["nothing"].state_dict()
    for model in models.values():
        assert all(torch.equal(tensor, usual[key]) for key, tensor in model.state_dict().items())
    ids = torch.tensor([[5, 6, 2]])
    embedded = {name: model.eval().embed(ids) for name, model in models.items()}
    assert torch.equal(embedded["nothing"], embedded["residual"])
    table = usual["embedding.weight"][ids]
    torch.testing.assert_close(embedded["nothing"] - embedded["scaling"], table * (RECIPE.d_model**0.5 - 1))
    block = models["residual"].encoder.layers[0]  # type: ignore[union-attr]
    x, y = torch.randn(1, 3, RECIPE.d_model), torch.randn(1, 3, RECIPE.d_model)
    assert torch.equal(block.add("self", x, lambda _: y, ForwardPass(), ""), block.self_norm(y))  # type: ignore[operator, union-attr]


def test_without_warm_up_the_rate_begins_at_its_peak() -> None:
    usual, at_once = (
        [omissions.learning_rate(step, name) for step in range(1, 900)] for name in ("nothing", "warm-up")
    )
    assert usual[RECIPE.warmup - 1 :] == at_once[RECIPE.warmup - 1 :]
    assert set(at_once[: RECIPE.warmup]) == {max(usual)}
    assert at_once[0] == pytest.approx(RECIPE.warmup * usual[0])


@pytest.mark.sweep
def test_a_short_training_gives_all() -> None:
    short = replace(RECIPE, updates=10, n_layers=1, d_model=8, n_heads=2, batch=2, seeds=(4,))
    found = omissions.measure(short, say=lambda line: None)
    assert set(found["loss"]) == set(LEFT_OUT)
    assert found["updates"] == [10]
