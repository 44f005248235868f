"""Our own rows of Table 3: the bundled measurement is of this recipe, a stopped one goes on, and a short one runs."""

import json
import math
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from recipes import ablations
from recipes.ablations import RECIPE, VARIANTS, Variant, measure, recipe_of
from recipes.smoothing import SmoothingRecipe
from tests.recipes.animals import animals_in_a_row
from vizformer.analysis.costs.paper_results import TABLE_3, loss_changes, own_rows, paper_row
from vizformer.assets import asset
from vizformer.config import ModelConfig
from vizformer.model import count_parameters

BUNDLED = json.loads(asset("lessons", "costs", "ablations.json").read_text(encoding="utf-8"))
TINY = SmoothingRecipe(
    vocab_size=300,
    model=dict(RECIPE.model, d_model=8, n_heads=2, d_ff=16, n_encoder_layers=1, n_decoder_layers=1),
    updates=3,
    measured_every=3,
    seeds=(1, 2),
)


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return animals_in_a_row(tmp_path, monkeypatch, ablations)


def test_the_bundled_measurement_is_of_this_recipe() -> None:
    assert BUNDLED["recipe"] == json.loads(json.dumps(asdict(RECIPE)))
    assert [(row["paper"], row["model"], row["smoothing"]) for row in BUNDLED["rows"]] == [
        (variant.paper, variant.model, variant.smoothing) for variant in VARIANTS
    ]
    for row, variant in zip(BUNDLED["rows"], VARIANTS, strict=True):
        assert [run["seed"] for run in row["runs"]] == list(RECIPE.seeds)
        options = {**recipe_of(variant, RECIPE).model, "vocab_size": RECIPE.vocab_size}
        config = ModelConfig.from_dict({**options, "pad_id": 0, "bos_id": 1, "eos_id": 2})
        assert {run["parameters"] for run in row["runs"]} == {count_parameters(config)}


def test_every_row_changes_what_the_paper_changes_by_the_same_factor() -> None:
    ours = {**RECIPE.model, "N": 2}
    base = {"h": 8, "N": 6, "d_model": 512, "d_ff": 2048}
    own_names = {"h": "n_heads", "N": "n_encoder_layers", "d_model": "d_model", "d_ff": "d_ff"}
    for variant in VARIANTS[1:]:
        for name, value in variant.paper.items():
            assert paper_row(variant.group, {name: value}) in TABLE_3
            if name in ("h", "d_model", "d_ff") and value != 1:  # one head is one head
                assert variant.model[own_names[name]] / ours[own_names[name]] == value / base[name]
            if name == "N":
                assert (variant.model["n_encoder_layers"] > 2) == (value > 6)
                assert variant.model["n_decoder_layers"] == variant.model["n_encoder_layers"]
            if name == "P_drop":
                assert variant.model["dropout"] == value
            if name == "eps":
                assert variant.smoothing == value
    with pytest.raises(LookupError):
        paper_row("A", {"h": 3})


@pytest.mark.slow
@pytest.mark.sweep
def test_a_stopped_measurement_goes_on_and_comes_to_the_same(data: Path, tmp_path: Path) -> None:
    variants = (VARIANTS[0], Variant("A", {"h": 1}, {"n_heads": 1}), VARIANTS[-1])
    whole = measure(data, tmp_path / "whole.json", TINY, variants, lambda text: None)
    path, said = tmp_path / "parts.json", list[str]()
    measure(data, path, TINY, variants, said.append)
    stopped = json.loads(path.read_text(encoding="utf-8"))
    stopped["rows"][1]["runs"].pop()
    stopped["rows"][2]["runs"].clear()
    path.write_text(json.dumps(stopped), encoding="utf-8")
    said.clear()
    assert measure(data, path, TINY, variants, said.append) == whole == json.loads(path.read_text(encoding="utf-8"))
    assert len(said) == 3  # what was there was not trained again
    other = measure(data, path, replace(TINY, updates=2), variants, said.append)
    assert len(said) == 9  # nor is another recipe's training taken for this one's
    assert other["rows"][0]["runs"] != whole["rows"][0]["runs"]


def test_rows_are_means_over_seeds_beside_the_paper_s() -> None:
    run = {"right": 0.5, "parameters": 7}
    rows = own_rows(
        {
            "rows": [
                {
                    "group": "base",
                    "paper": {},
                    "model": {},
                    "smoothing": 0.1,
                    "runs": [
                        {**run, "seed": 0, "perplexity": 4.0, "bleu": 20.0},
                        {**run, "seed": 1, "perplexity": 9.0, "bleu": 21.0},
                    ],
                },
                {"group": "A", "paper": {"h": 1}, "model": {"n_heads": 1}, "smoothing": 0.1, "runs": []},
                {
                    "group": "D",
                    "paper": {"eps": 0.2},
                    "model": {},
                    "smoothing": 0.2,
                    "runs": [{**run, "seed": 0, "perplexity": 12.0, "bleu": 18.0}],
                },
            ]
        }
    )
    base, smooth = rows  # the row that was not trained is left out
    assert base.perplexity == pytest.approx(6.0)
    assert (base.bleu, base.bleu_range) == (20.5, 1.0)
    assert smooth.changed == (("eps", 0.2),)
    assert smooth.paper.perplexity == 5.47
    assert loss_changes(rows) == [pytest.approx((math.log(2.0), math.log(5.47 / 4.92)))]


def test_what_the_lesson_says_of_trainings_that_are_stopped_early_holds() -> None:
    rows = own_rows(BUNDLED)
    changes = dict(zip([dict(row.changed).popitem() for row in rows[1:]], loss_changes(rows), strict=True))
    own, paper = changes["dropout", 0.0]
    assert own < 0 < paper  # "without dropout it is better here"
    own, paper = changes["n_decoder_layers", 3]
    assert paper < 0.3 < own  # "with more layers much worse"
