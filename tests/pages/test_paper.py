"""Worked examples: the printed examples, and attention without weights for the typed sentence."""

import numpy as np
import pytest

from tests.pages.conftest import Open
from tests.pages.reading import array, chart, said
from tests.refs import subject
from vizformer.web.pages import paper

PAGE = "pages/learn/paper.py"


def test_the_printed_example_is_told_from_the_right_ones(open_app: Open) -> None:
    app = open_app(PAGE)
    assert not app.exception
    words = said(app)
    assert "they sum to 1.2, not to 1" in words
    assert "output with these weights is 2.6" in words
    assert all(digits in words for digits in ("0.6405", "0.3655", "0.3349", "2.3302"))


@pytest.mark.sample(2)
@pytest.mark.parametrize("model", ["zh-en", "stories", "cloze"])
@pytest.mark.parametrize("identity", [True, False])
def test_the_map_is_what_the_library_computes_of_the_first_layer(open_app: Open, model: str, identity: bool) -> None:
    app = open_app(PAGE, model=model, text="我有一只猫。")
    app = app.toggle(key="paper.identity").set_value(identity).run()
    app = app.segmented_control(key="paper.kind").set_value("scores").run()
    assert not app.exception
    stack = "decoder" if model == "stories" else "encoder"
    expected = paper.first_layer(subject(model, "我有一只猫。"), stack, identity, True).scores
    np.testing.assert_allclose(array(chart(app, 0)["data"][0]["z"]), expected, rtol=1e-5, atol=1e-5)
    assert np.allclose(expected, expected.T) == identity  # that is what the caption says
