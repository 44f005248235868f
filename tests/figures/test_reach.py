"""Paths, costs and gradients as pictures: the numbers that go in are the numbers that are drawn."""

import json

import numpy as np
import pytest

from vizformer import figures
from vizformer.figures.style import ENGLISH

EDGES = np.array([(0, 0, 0, 1), (0, 0, 1, 1), (1, 0, 1, 1)])
PATH = np.array([(0, 0), (1, 1)])


def test_every_connection_and_the_path_are_drawn() -> None:
    figure = figures.path_picture(["<b>", "我"], 1, EDGES, PATH, title="a")
    lines, nodes, way = figure.data
    assert lines.x.reshape(-1, 3)[:, :2].tolist() == EDGES[:, [0, 2]].tolist()
    assert lines.y.reshape(-1, 3)[:, :2].tolist() == EDGES[:, [1, 3]].tolist()
    assert np.isnan(lines.x.reshape(-1, 3)[:, 2]).all()  # apart from each other
    assert (way.x.tolist(), way.y.tolist()) == ([0, 1], [0, 1])
    assert nodes.text[0] == "input, position 0 “&lt;b&gt;”"
    assert nodes.text[3] == "layer 1, position 1 “我”"
    assert figure.layout.yaxis.range[0] < figure.layout.yaxis.range[1]  # the input below
    assert figure.layout.xaxis.ticktext[0] == "&lt;b&gt;"
    states = figures.path_picture(["a", "b"], 1, EDGES, PATH, states=True)
    assert ENGLISH["reach_states"] in states.layout.yaxis.ticktext
    many = figures.path_picture([str(i) for i in range(100)], 1, EDGES, PATH)
    assert len(many.layout.xaxis.ticktext) <= 16
    with pytest.raises(ValueError, match="steps, 2"):
        figures.path_picture(["a"], 1, EDGES, EDGES)


def test_gradients_are_drawn_against_the_last_tokens_own() -> None:
    sizes = {"one": (["a", "<b>", "c"], np.array([1.0, 2, 4])), "two": (["d", "e"], np.array([3.0, 2]))}
    figure = figures.gradient_reach(sizes, back=1)
    one, two = figure.data
    assert (one.x.tolist(), one.y.tolist()) == ([2, 1, 0], [0.25, 0.5, 1])
    assert (two.x.tolist(), two.y.tolist()) == ([1, 0], [1.5, 1])
    assert one.text[1] == "&lt;b&gt;"
    assert one.marker.symbol != two.marker.symbol
    assert figure.layout.yaxis.type == "log"
    assert figures.gradient_reach(sizes, logarithmic=False).layout.yaxis.type == "linear"
    assert figure.layout.shapes[0].x0 == 1
    json.loads(figure.to_json())
    with pytest.raises(ValueError, match="the last one above"):
        figures.gradient_reach({"one": (["a"], np.array([0.0]))})


def test_a_token_out_of_reach_has_no_logarithm() -> None:
    curves = {"window": (["a", "b", "c"], np.array([0.0, 2, 4]))}
    (logarithmic,), (linear,) = (figures.gradient_reach(curves, logarithmic=flag).data for flag in (True, False))
    assert np.isnan(logarithmic.y[0])
    assert logarithmic.y[1:].tolist() == linear.y[1:].tolist() == [0.5, 1]
    assert linear.y[0] == 0


def test_the_spread_of_other_texts_is_a_band_behind_its_curve():
    curves = {"one": (["a", "b"], np.array([1.0, 2.0])), "two": (["a", "b"], np.array([2.0, 2.0]))}
    low, high = np.array([1.0, 0.25]), np.array([1.0, 0.75])
    lone, above, below, curve = figures.gradient_reach(curves, {"two": (low, high)}).data
    assert (lone.name, below.name, curve.name) == ("one", "two, spread", "two")
    assert [list(line.y) for line in (above, below)] == [[1, 0.75], [1, 0.25]]
    assert below.fill == "tonexty"
