"""The paper's tables: what is typed off agrees with itself, with the presets and with models that are counted."""

import pytest

from vizformer.analysis.costs.paper_results import RECIPES, TABLE_2, TABLE_3, counted
from vizformer.analysis.costs.parameter_count import model_cost
from vizformer.config import ModelConfig


@pytest.mark.parametrize("row", [row for row in TABLE_3 if row.millions is not None], ids=str)
@pytest.mark.sample(4)
def test_the_rows_have_as_many_parameters_as_the_table_says(row) -> None:
    """All rows but the big one agree to the million with a table of 41,000 tokens in place of 37,000."""
    assert row.millions is not None
    assert counted(row) / 1e6 == pytest.approx(row.millions, rel=0.07)
    if row.group != "big":
        assert abs(counted(row, 41_000) / 1e6 - row.millions) < 0.55


def test_rows_that_print_no_parameters_have_those_of_the_base_model() -> None:
    base = counted(TABLE_3[0])
    for row in TABLE_3:
        if row.millions is None and row.group != "E":
            assert counted(row) == base, row
    learned = next(row for row in TABLE_3 if row.group == "E")
    assert counted(learned) - base == 512 * 512


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda one: one.preset)
def test_the_recipes_are_the_presets_and_cost_what_table_2_says(recipe) -> None:
    config = ModelConfig.preset(recipe.preset)
    assert (config.n_encoder_layers, config.n_decoder_layers) == (recipe.layers, recipe.layers)
    assert (config.d_model, config.d_ff, config.n_heads, config.d_head, config.dropout) == (
        recipe.d_model,
        recipe.d_ff,
        recipe.heads,
        recipe.d_head,
        recipe.dropout,
    )
    name = recipe.preset.replace("transformer-", "Transformer ")
    printed = next(row.flops[0] for row in TABLE_2 if row.name == name)
    assert recipe.hardware_flops == pytest.approx(printed, rel=0.01)
    tokens = recipe.steps * 25_000  # target tokens of a batch (5.1), and about as many source tokens
    assert model_cost(config, 25).training_flops(tokens) < printed  # the estimate is that of the hardware's time


def test_figures_that_are_often_copied_wrong() -> None:
    big = next(row for row in TABLE_2 if row.name == "Transformer big")
    assert big.bleu == (28.4, 41.8)
    assert max(row.bleu[0] or 0 for row in TABLE_2 if not row.ours) == 26.36  # "by over 2 BLEU", ensembles included
    rows = {(row.group, row.changed): (row.perplexity, row.bleu) for row in TABLE_3}
    assert rows["base", ()] == (4.92, 25.8)
    assert len(rows) == len(TABLE_3) == 20
