"""Pictures of embedding tables: the numbers given are the numbers drawn."""

import numpy as np
import pytest

from vizformer import figures
from vizformer.figures.embeddings import Curve
from vizformer.figures.style import ENGLISH


def test_bars_of_the_nearest_and_the_line_of_the_average() -> None:
    figure = figures.neighbour_bars(["dog", "<b>", "dog"], np.array([0.5, 0.3, -0.1]), 0.11, title="x")
    (bars,) = figure.data
    assert bars.x.dtype == np.float32
    assert bars.x.tolist() == pytest.approx([0.5, 0.3, -0.1])
    assert bars.y.tolist() == [0, 1, 2]
    assert figure.layout.yaxis.ticktext == ("dog", "&lt;b&gt;", "dog")
    assert figure.layout.shapes[0].x0 == figure.layout.shapes[0].x1 == 0.11
    assert "0.11" in figure.layout.annotations[0].text
    assert figure.layout.xaxis.range[0] <= -0.1
    assert bars.text == ("0.50", "0.30", "−0.10")
    assert "−" not in figures.neighbour_bars(["a"], np.array([0.5]), -0.001).layout.annotations[0].text
    with pytest.raises(ValueError, match="do not fit 1 tokens"):
        figures.neighbour_bars(["a"], np.array([0.5, 0.5]), 0.0)


def test_the_map_draws_each_point_once_by_its_kind() -> None:
    points = np.arange(10, dtype=float).reshape(5, 2)
    figure = figures.embedding_map(points, ["猫", "<b>", "狗", "鸟", "x"], [0, 0, 1, 1, 2], (0.3, 0.2), chosen=0)
    rays, rest, close, own = figure.data
    assert rays.mode == "lines"
    assert len(rays.x) == 6  # from the chosen point to each of its neighbours
    assert np.array_equal(own.x, points[:2, 0].astype(np.float32))
    assert np.array_equal(close.y, points[2:4, 1].astype(np.float32))
    assert own.text == ("猫", "&lt;b&gt;")
    assert rest.mode == "markers"
    assert "猫" in close.name
    assert "30%" in figure.layout.xaxis.title.text
    assert "20%" in figure.layout.yaxis.title.text
    for axis, column in ((figure.layout.xaxis, 0), (figure.layout.yaxis, 1)):
        assert axis.range[0] < points[:, column].min()
        assert axis.range[1] > points[:, column].max()
    with pytest.raises(ValueError, match="5 tokens of 4 kinds"):
        figures.embedding_map(points, ["a"] * 5, [0] * 4, (0.3, 0.2))


def test_names_of_points_that_coincide_stand_on_different_sides() -> None:
    points = np.array([[0.0, 0.0], [0.001, 0.0], [0.0, 0.001], [1.0, 1.0]])
    figure = figures.embedding_map(points, ["one", "two", "three", "four"], [0, 0, 0, 0], (0.3, 0.2))
    assert len(set(figure.data[0].textposition[:3])) == 3


def test_names_without_room_are_left_to_the_hover() -> None:
    points = np.random.default_rng(0).normal(size=(40, 2)) * 0.02
    points[0] = 1.0, 1.0
    names = [f"token {i}" for i in range(40)]
    figure = figures.embedding_map(points, names, [0] * 20 + [1] * 20, (0.3, 0.2), chosen=25)
    close, own = figure.data[1:]
    assert close.text[5] == "token 25"
    assert own.text[0] == "token 0"  # has all the room in the world
    assert 0 < sum(text == "" for text in (*own.text, *close.text)) < 40
    assert [*own.customdata, *close.customdata] == names


def test_curves_begin_at_the_table_and_the_band_at_the_input() -> None:
    curves = [Curve("<a>", np.array([1, 0.9, 0.5, -0.2])), Curve("b", np.array([1, 1, 1, 0.9]))]
    other = np.array([0.1, 0.2, 0.3])
    figure = figures.similarity_curves(curves, other, other - 0.1, other + 0.1, added=False)
    high, low, mean, first, second = figure.data
    assert low.fill == "tonexty"
    assert low.x.tolist() == high.x.tolist() == [1, 2, 3]
    assert np.isnan(mean.y[0])
    assert mean.y[1:].tolist() == pytest.approx(other.tolist())
    assert first.y.tolist() == pytest.approx([1, 0.9, 0.5, -0.2])
    assert first.name == "&lt;a&gt;"
    assert (first.line.color, first.line.dash) != (second.line.color, second.line.dash)
    assert figure.layout.xaxis.ticktext == ("table", ENGLISH["input_alone"], "layer 0", "layer 1")
    assert figure.layout.yaxis.range[0] < -0.2
    assert figures.similarity_curves(curves, other, other, other).layout.xaxis.ticktext[1] == "+ position"
    with pytest.raises(ValueError, match="curves need 4 values"):
        figures.similarity_curves([Curve("a", np.ones(3))], other, other, other)


def test_lengths_stand_side_by_side() -> None:
    figure = figures.norm_bars(["a", "<b>"], np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    tokens, positions = figure.data
    assert tokens.y.tolist() == [1, 2]
    assert positions.y.tolist() == [3, 4]
    assert tokens.marker.pattern.shape != positions.marker.pattern.shape  # told apart without colour
    assert figure.layout.xaxis.ticktext == ("a", "&lt;b&gt;")
    assert len(figures.norm_bars(["a"], np.array([1.0]), None).data) == 1
    many = figures.norm_bars(["a"] * 100, np.ones(100), None)
    assert len(many.layout.xaxis.tickvals) <= 32
    with pytest.raises(ValueError, match="do not fit 1 tokens"):
        figures.norm_bars(["a"], np.ones(2), None)
