"""The small trainings by width of the feed-forward: the bundled ones are of the recipe, and show what the lesson says."""

import json
from dataclasses import asdict, replace

import pytest
import torch

from recipes import feed_forward_width
from recipes.feed_forward_width import RECIPE, letters, mean_loss, train
from vizformer.analysis.training.small_trainings import width_losses
from vizformer.assets import asset
from vizformer.model import Transformer, count_parameters

BUNDLED = json.loads(asset("lessons", "block", "feed_forward_width.json").read_text(encoding="utf-8"))


def test_the_bundled_losses_are_of_this_recipe() -> None:
    assert BUNDLED["recipe"] == json.loads(json.dumps(asdict(RECIPE)))
    read, held_out, vocab_size = letters()
    assert BUNDLED["letters"] == {"read": len(read), "held_out": len(held_out)}
    assert [(one["layers"], one["ratio"]) for one in BUNDLED["models"]] == list(RECIPE.models)
    for one in BUNDLED["models"]:
        assert [run["seed"] for run in one["runs"]] == list(RECIPE.seeds)
        assert one["parameters"] == count_parameters(RECIPE.config(one["layers"], one["ratio"], vocab_size))


def test_one_series_keeps_the_depth_and_the_other_one_the_size() -> None:
    found = width_losses(BUNDLED)
    assert [(row.layers, row.ratio) for row in found["depth"]] == [(2, 1), (2, 2), (2, 4), (2, 8)]
    assert [(row.layers, row.ratio) for row in found["size"]] == [(4, 1), (3, 2), (2, 4), (1, 10)]
    assert {row.matrices for row in found["size"]} == {24}
    sizes = [row.parameters for row in found["size"]]
    assert max(sizes) < 1.02 * min(sizes)


def test_what_the_lesson_says_of_the_losses_holds() -> None:
    found = width_losses(BUNDLED)
    one, two, four, eight = found["depth"]
    assert one.mean > two.mean > four.mean
    assert abs(eight.mean - four.mean) < four.spread
    narrow, double, usual, wide = found["size"]
    assert abs(double.mean - usual.mean) < 0.01
    assert narrow.mean - min(double.mean, usual.mean) < narrow.spread
    assert min(wide.losses) > max(loss for row in (narrow, double, usual) for loss in row.losses)


def test_a_training_begins_as_unsure_as_it_should_and_learns() -> None:
    short = replace(RECIPE, d_model=16, updates=30, rows=4, context=32, warmup=5)
    read, held_out, vocab_size = letters(short)
    untrained = mean_loss(Transformer(short.config(1, 2, vocab_size)), held_out, 32)
    found = train(1, 2, 0, short)
    assert found["held_out"] < untrained - 0.3
    assert train(1, 2, 0, short)["held_out"] == found["held_out"]
    assert torch.equal(torch.cat([read, held_out]), torch.cat(letters()[:2]))


def test_a_short_measurement_has_every_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    def quick(layers: int, ratio: int, seed: int, recipe: object) -> dict[str, float]:
        return {"seed": seed, "held_out": 2.0, "read": 1.9, "seconds": 1.0}

    monkeypatch.setattr(feed_forward_width, "train", quick)
    said = list[str]()
    found = feed_forward_width.measure(say=said.append)
    assert len(said) == len(found["models"]) == len(RECIPE.models)
    assert all(len(one["runs"]) == len(RECIPE.seeds) for one in found["models"])
