"""A figure without looking at it: the sentence names the largest value, the table holds the strongest ones."""

import numpy as np
import pytest

from vizformer import figures
from vizformer.figures import files
from vizformer.figures.figure import Figure, scatter
from vizformer.figures.tables import hover, sentence, table, written

PATTERN = np.array([[1.0, 0.0, 0.0], [0.25, 0.75, 0.0], [0.2, 0.3, 0.5]], dtype=np.float32)
TOKENS = ["<b>", "a&amp;b", "猫"]
FUTURE = np.triu(np.full((3, 3), 2), 1)


def test_the_sentence_of_a_head_passes_over_rows_that_see_one_key() -> None:
    assert sentence(figures.attention_heatmap(PATTERN, TOKENS, TOKENS, reasons=FUTURE)) == (
        "Values: 6, from 0.2 to 1; masked cells: 3. Largest, where a row has more than one cell: "
        "query 1 “a&amp;b” attends to key 1 “a&amp;b” with weight 0.7500."
    )
    assert sentence(figures.attention_heatmap(PATTERN, TOKENS, TOKENS)) == (
        "Values: 9, from 0 to 1. Largest: query 0 “<b>” attends to key 0 “<b>” with weight 1.0000."
    )


def test_the_table_of_a_head_has_both_tokens_and_the_weight_of_each_visible_cell() -> None:
    found = table(figures.attention_heatmap(PATTERN, TOKENS, TOKENS, reasons=FUTURE))
    assert found.columns == ("query", "query: name", "key", "key: name", "weight")
    assert found.rows == [
        (query, TOKENS[query], key, TOKENS[key], pytest.approx(PATTERN[query, key]))
        for query in range(3)
        for key in range(query + 1)
    ]


def test_the_matrix_of_a_mask_is_told_with_its_blocked_cells() -> None:
    mask = figures.added_mask(np.array([[0, 2], [0, 0]]), ["a", "b"], ["a", "b"], words={"score": "M"})
    assert sentence(mask) == "Values: 3; every one is 0; masked cells: 1."
    found = table(mask)
    assert found.columns == ("series", "query", "query: name", "key", "key: name", "M")
    assert found.rows[-1] == ("the future", 0, "a", 1, "b", "−∞")  # JSON has no infinity
    assert [row[-1] for row in found.rows[:-1]] == [0.0, 0.0, 0.0]


def test_names_without_a_title_are_told_apart_by_their_axis() -> None:
    figure = Figure(scatter(x=[0, 1], y=[0, 1], mode="markers"))
    figure.update_xaxes(tickvals=[0, 1], ticktext=["a", "b"])
    figure.update_yaxes(tickvals=[0, 1], ticktext=["c", "d"])
    told = table(figure)
    assert told.columns == ("x (to the right)", "y (upwards)")
    assert told.rows[0] == ("a", "c")


def test_a_large_map_keeps_the_strongest_cells_whatever_their_sign() -> None:
    values = np.random.default_rng(0).standard_normal((300, 240)).astype(np.float32)
    found = table(figures.matrix_heatmap(values), most=100)
    order = np.argsort(-np.abs(values).ravel(), kind="stable")[:100]
    places = sorted(divmod(int(at), 240) for at in order)
    assert found.total == values.size
    assert [(int(row[0]), int(row[1])) for row in found.rows] == places
    assert [row[2] for row in found.rows] == [pytest.approx(values[at]) for at in places]


def test_what_is_drawn_with_shapes_tells_its_numbers_too() -> None:
    text = figures.coloured_text(np.array([0.25, np.nan, 0.5], np.float32), ["a", " b", " <i>"])
    assert (text.data[0].zmin, text.data[0].zmax) == (0, 1)  # of its colour bar
    assert sentence(text) == (
        "Values: 2, from 0.25 to 0.5; masked cells: 1. Largest: token 2 “<i>” has the weight 0.5000."
    )
    lines = figures.attention_lines(PATTERN[None], TOKENS, TOKENS, heads=[7], threshold=0.4)
    assert table(lines).rows == [
        (0, "<b>", 0, "<b>", 1.0),
        (1, "a&amp;b", 1, "a&amp;b", 0.75),
        (2, "猫", 2, "猫", 0.5),
    ]
    grid = figures.head_grid(np.stack([PATTERN, PATTERN / 2])[None], reasons=FUTURE)
    assert [row[-1] for row in table(grid).rows] == [0.75, 0.375]


def test_curves_say_the_highest_and_the_lowest_point_at_the_real_step() -> None:
    curves = figures.training_curves([1, 10], [3.0, 2.0], [10], [2.5], [0.5], at=10, last=10)
    steps = {row[1] for row in table(curves).rows}
    assert steps == {1, 10}  # not the places of a logarithmic axis
    assert "Lowest: step 10: 50.0% of new examples answered right." in sentence(curves)


def test_a_figure_without_numbers_says_so_and_may_say_its_own() -> None:
    empty = Figure(scatter(x=[None], y=[None], mode="lines"))
    assert sentence(empty) == "There are no numbers in this picture."
    empty.says = "Own words."
    assert sentence(empty) == "Own words."
    assert table(empty).rows == []


@pytest.mark.parametrize(
    ("value", "form", "text"),
    [
        (0.123456, ".4f", "0.1235"),
        (-1.5, "+.3f", "−1.500"),
        (1234567, ",", "1,234,567"),
        (12345, ".3s", "12.3k"),
        (3.3e18, ".2~g", "3.3e+18"),
        (7.0, "d", "7"),
        (0.25, ".1%", "25.0%"),
    ],
)
def test_numbers_are_written_as_the_browser_writes_them(value: float, form: str, text: str) -> None:
    assert written(value, form) == text


def test_a_token_that_reads_like_a_place_of_the_template_stays_a_token() -> None:
    trace = {"type": "scatter", "customdata": ["%{y}&lt;b&gt;"], "hovertemplate": "<b>“%{customdata}”</b>: %{y:.1f}"}
    assert hover(trace, (0,), (1.0, {}), (2.0, {})) == "“%{y}<b>”: 2.0"


def test_files_hold_what_a_figure_is_told_by_without_its_masks(monkeypatch: pytest.MonkeyPatch) -> None:
    weights = np.array([0.1, 0.7, np.nan], dtype=np.float32)
    coloured = figures.coloured_text(weights, ["a", "b", "c"])
    assert [row[:8] for row in files.table(coloured).splitlines()[1:]] == [",0,,0,a,", ",0,,1,b,"]
    (kept,) = (values for name, values in files.arrays(coloured).items() if name.endswith("_z"))
    np.testing.assert_array_equal(kept[:, 0], weights)
    monkeypatch.setattr(files, "MOST_ROWS", 10_000)
    lines = figures.attention_lines(
        np.eye(90, dtype=np.float32)[None].repeat(2, 0), ["a"] * 90, ["a"] * 90, heads=[0, 1]
    )
    assert len(files.table(lines).splitlines()) == 1 + 2 * 90  # cells without a line are no rows
