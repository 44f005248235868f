"""The bars of a logit's terms hold what was passed."""

import numpy as np
import pytest

from vizformer import figures
from vizformer.figures.style import QUALITATIVE


def test_a_bar_for_each_term_in_the_order_given() -> None:
    figure = figures.logit_terms(["layer 0, head <1>", "bias", "bias"], np.array([2.0, -1.0, 0.5]))
    (bars,) = figure.data
    assert bars.x.tolist() == [2.0, -1.0, 0.5]
    assert list(bars.marker.color) == [QUALITATIVE[0], QUALITATIVE[1], QUALITATIVE[0]]
    assert list(figure.layout.yaxis.ticktext) == ["layer 0, head &lt;1&gt;", "bias", "bias"]
    assert figure.layout.yaxis.range == (2.5, -0.5)
    assert figure.layout.xaxis.range[0] < -1.0 < 2.0 < figure.layout.xaxis.range[1]
    assert list(bars.text) == ["+2.00", "−1.00", "+0.50"]


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="do not fit"):
        figures.logit_terms(["one"], np.zeros(2))
    assert figures.logit_terms([], np.zeros(0)).plotly.data
