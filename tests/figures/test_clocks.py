"""Curves, clocks and arrows."""

import numpy as np
import pytest

from vizformer import figures


def test_curves_may_end_early_and_are_told_apart_without_colour() -> None:
    curves = {"<b>": np.arange(4.0), "short": np.ones(2)}
    figure = figures.line_curves(
        np.arange(4),
        curves,
        mark=(1.5, "a < b"),
        hover="{name} at {place}: {value}",
        dots=(np.array([1]), {name: values[1:2] for name, values in curves.items()}, ["1 <s>"]),
    )
    first, dots, second = figure.data[0], figure.data[1], figure.data[2]
    assert (first.name, second.name) == ("&lt;b&gt;", "short")
    assert second.x.tolist() == [0, 1]
    assert first.line.dash != second.line.dash
    assert first.line.color == dots.marker.color
    assert list(dots.customdata) == ["1 &lt;s&gt;"]
    assert "&lt;b&gt; at %{x" in first.hovertemplate
    assert figure.layout.shapes[0].x0 == 1.5
    assert figure.layout.annotations[0].text == "a &lt; b"
    with pytest.raises(ValueError, match="5 values for 4 places"):
        figures.line_curves(np.arange(4), {"long": np.ones(5)})


def test_hands_point_where_sine_and_cosine_are() -> None:
    pairs = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, -1.0], [0.0, 1.0], [-1.0, 0.0]])
    figure = figures.position_clocks(pairs, [f"λ\n<{i}>" for i in range(5)], 0, moved=(pairs[::-1], 4))
    hands = [trace for trace in figure.data if trace.name]
    assert [trace.name for trace in hands] == ["position 0", "position 4"]
    x, y = hands[0].x.reshape(5, 3), hands[0].y.reshape(5, 3)
    directions = np.stack([x[:, 1] - x[:, 0], y[:, 1] - y[:, 0]], axis=1)
    assert directions == pytest.approx(0.9 * pairs, abs=1e-6)
    assert np.isnan(x[:, 2]).all()  # hands are not joined
    assert y[4, 0] < y[0, 0]  # the fifth clock begins the second row
    assert hands[0].line.dash != hands[1].line.dash
    assert figure.layout.annotations[1].text == "λ<br>&lt;1&gt;"
    with pytest.raises(ValueError, match="do not fit 2 names"):
        figures.position_clocks(pairs, ["a", "b"], 0)


def test_arrows_from_the_origin() -> None:
    before, after = np.array([1.0, 0.0]), np.array([0.0, 2.0])
    figure = figures.turned_arrows({"q": (before, after)})
    assert [trace.name for trace in figure.data] == ["q", "q, turned"]
    assert (figure.data[1].x.tolist(), figure.data[1].y.tolist()) == ([0, 0], [0, 2])
    assert figure.layout.xaxis.range[1] > 2
    assert figure.layout.yaxis.scaleanchor == "x"


@pytest.mark.parametrize("n", [4, 30])
def test_pairs_of_tokens_few_or_many(n: int) -> None:
    values = np.arange(n * n, dtype=np.float32).reshape(n, n)
    values[0, 1] = np.nan
    figure = figures.token_pairs(values, [f"{i} <s>" for i in range(n)], row_title="q")
    (heatmap,) = (trace for trace in figure.data if trace.type == "heatmap")
    assert np.array_equal(heatmap.z, values, equal_nan=True)
    assert (heatmap.zmin, heatmap.zmax) == (1 - n * n, n * n - 1)
    assert figure.layout.yaxis.range[0] > figure.layout.yaxis.range[1]  # row 0 on top
    printed = figure.layout.xaxis.ticktext
    assert printed[0] == "0 &lt;s&gt;"
    assert len(printed) == min(n, 8)
    if n > 12:
        assert list(heatmap.customdata[3][29]) == ["3 &lt;s&gt;", "29 &lt;s&gt;"]
    with pytest.raises(ValueError, match="names do not fit"):
        figures.token_pairs(values, ["a"])


def test_position_codes_with_the_names_of_tokens() -> None:
    figure = figures.positional_heatmap(np.zeros((3, 64)), names=["<s>", "a", "a"])
    ticks = [axis for axis in (figure.layout.yaxis.ticktext, figure.layout.yaxis2.ticktext) if axis]
    assert ("0 &lt;s&gt;", "1 a", "2 a") in ticks
    with pytest.raises(ValueError, match="2 names do not fit 3 positions"):
        figures.positional_heatmap(np.zeros((3, 4)), names=["a", "b"])


def test_few_whole_places_have_no_marks_between_them() -> None:
    layers = figures.line_curves(np.arange(3), {"share": np.ones(3)})
    assert layers.layout.xaxis.dtick == 1
    for others in (np.linspace(0, 1, 3), np.array([1, 1_000, 1_000_000])):  # (a million marks stop a browser)
        assert figures.line_curves(others, {"share": np.ones(3)}).layout.xaxis.dtick is None
