"""Points of scores against costs."""

import pytest

from vizformer import figures
from vizformer.figures.results import Point


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
