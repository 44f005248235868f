"""The figure of a row on its way."""

import numpy as np
import pytest

from vizformer import figures


def test_a_row_on_its_way_has_bars_and_two_lines() -> None:
    lengths, start, end = np.array([1.0, 5.0, 2.0]), np.array([1.0, -0.2, 0.1]), np.array([0.1, 0.8, 1.0])
    figure = figures.stream_points(["start", "+ <b>", "norm"], lengths, start, end, kinds=[0, 1, 2], title="x")
    drawn = figure.plotly
    np.testing.assert_allclose(drawn.data[0].y, lengths)
    np.testing.assert_allclose(drawn.data[1].y, start)
    np.testing.assert_allclose(drawn.data[2].y, end)
    assert "&lt;b&gt;" in drawn.layout.xaxis.ticktext[1]
    assert drawn.layout.yaxis2.range[0] < -0.2
    assert len(set(drawn.data[0].marker.color)) == 3


def test_numbers_that_do_not_fit_are_refused() -> None:
    one, two = np.ones(1), np.ones(2)
    with pytest.raises(ValueError, match="do not fit"):
        figures.stream_points(["a", "b"], two, one, two)
