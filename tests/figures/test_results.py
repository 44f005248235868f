"""Points of scores against costs."""

import pytest

from vizformer import figures
from vizformer.figures.curves import Point


def test_points_stand_where_their_numbers_say_with_their_names() -> None:
    figure = figures.score_against_cost({"a": [Point("<x>", 3.3e18, 27.3), Point("y", 2.3e19, 28.4)], "b": []})
    first, second = figure.data
    assert first.x.tolist() == [3.3e18, 2.3e19]
    assert first.y.tolist() == pytest.approx([27.3, 28.4])
    assert first.text == ("&lt;x&gt;", "y")
    assert len(second.x) == 0
    assert figure.layout.xaxis.type == "log"
    assert first.marker.symbol != second.marker.symbol
    with pytest.raises(ValueError, match="above 0"):
        figures.score_against_cost({"a": [Point("x", 0.0, 1.0)]})


def test_changes_stand_in_rows_with_their_names() -> None:
    figure = figures.changes(["one <head>", "no dropout"], {"here": [0.25, -0.5], "paper": [0.07, 0.16]})
    here, paper = figure.data
    assert here.x.tolist() == [0.25, -0.5]
    assert here.y.tolist() == paper.y.tolist() == [0, 1]
    assert figure.layout.yaxis.ticktext == ("one &lt;head&gt;", "no dropout")
    assert figure.layout.yaxis.range[0] > figure.layout.yaxis.range[1]  # the first one is at the top
    with pytest.raises(ValueError, match="do not fit"):
        figures.changes(["one"], {"here": [1.0, 2.0]})


def test_rings_are_named_below_so_that_points_are_seen_in_them() -> None:
    figure = figures.named_points({"a": [("<x>", -1.0, 3.0)], "b": [("y", -1.0, 3.0)]}, rings=["a"], ends=(-4.0, 5.0))
    ring, point = figure.data
    assert (ring["marker"]["symbol"], point["marker"]["symbol"]) == ("circle-open", "square")
    assert ring["marker"]["size"] > point["marker"]["size"]
    assert (ring["textposition"], point["textposition"]) == ("bottom center", "top center")
    assert list(ring["text"]) == ["&lt;x&gt;"]
    assert list(figure.layout["xaxis"]["range"]) == [-4.0, 5.0]
