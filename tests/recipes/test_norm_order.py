"""The small trainings of the lesson Add & norm: the bundled curves are those of the recipe."""

import json
import math
from dataclasses import asdict, replace

import pytest

from recipes import norm_order
from recipes.loss_curves import averaged
from vizformer.assets import asset

BUNDLED = json.loads(asset("lessons", "block", "norm_order.json").read_text(encoding="utf-8"))


def test_the_bundled_curves_are_of_this_recipe() -> None:
    assert BUNDLED["recipe"] == asdict(norm_order.RECIPE)
    assert BUNDLED["guessing"] == pytest.approx(math.log(11), abs=1e-4)  # ten digits and the end mark
    points = norm_order.RECIPE.updates // norm_order.AVERAGED
    assert {len(curve) for curve in BUNDLED["loss"].values()} == {len(BUNDLED["updates"])} == {points}


@pytest.mark.sample(1)
@pytest.mark.parametrize(("name", "order", "warmup"), [("post", "post", 0), ("pre", "pre", 0), ("warm", "post", 100)])
def test_the_bundled_curves_begin_as_the_training_does(name: str, order: str, warmup: int) -> None:
    short = replace(norm_order.RECIPE, updates=norm_order.AVERAGED)
    losses = norm_order.train_losses(order, warmup, short)  # type: ignore[arg-type]
    # Sums in another order on another processor: a few updates carry that far.
    assert averaged(losses, norm_order.AVERAGED) == pytest.approx(BUNDLED["loss"][name][:1], rel=0.02)


def test_what_the_lesson_says_of_the_curves_holds() -> None:
    last = {name: curve[-1] for name, curve in BUNDLED["loss"].items()}
    assert last["post"] > 0.95 * BUNDLED["guessing"]
    assert max(last["pre"], last["warm"]) < 0.3


def test_a_short_training_gives_all_three() -> None:
    short = replace(norm_order.RECIPE, updates=5, n_layers=1, d_model=8, batch=2, warmup=2)
    found = norm_order.measure(short, say=lambda line: None)
    assert set(found["loss"]) == {"post", "pre", "warm"}
    assert found["updates"] == [5]
