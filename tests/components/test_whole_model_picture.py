"""The picture of the whole model: what travels to the browser, what is refused, and a press that is answered once."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from tests.components.test_mount import sent
from vizformer.components import whole_model_picture as component
from vizformer.components.whole_model_picture import Candidate, Lane, Maps, Picture

SOURCE, TARGET = ["I", "see", "</script>"], ["<s>", "看"]


def maps(kind: str, layer: int, queries: int, keys: int) -> Maps:
    scores = np.random.default_rng(layer).standard_normal((2, queries, keys))
    reasons = (
        np.triu(np.full((queries, keys), 2, np.uint8), 1) if kind == "decoder" else np.zeros((queries, keys), np.uint8)
    )
    weights = np.where(reasons > 0, 0, np.exp(scores))
    totals = np.log(weights.sum(-1))
    weights /= weights.sum(-1, keepdims=True)
    return Maps(kind, layer, [0, 3], 8, 0.125, True, weights, scores, reasons, totals)


def picture(**changes: Any) -> Picture:
    rows = np.linspace(-1, 1, 12).reshape(3, 4)
    values: dict[str, Any] = {
        "lanes": [
            Lane("encoder", SOURCE, 3, 2, rows, rows, [maps("encoder", i, 3, 3) for i in range(2)]),
            Lane("decoder", TARGET, 5, 1, rows[:2], None, [maps("decoder", 0, 2, 2), maps("cross", 0, 2, 3)]),
        ],
        "candidates": [[Candidate("看", 5, 0.75), Candidate("</s>", 2, 0.25, special=True)]] * 2,
        "written": ["看"],
        "look": (3, 1, 1, 2),
        "name": "one",
    }
    return Picture(**{**values, **changes})


def test_what_travels() -> None:
    given = picture()
    data, columns = component.content(given)
    cells = 2 * (9 + 9 + 4 + 6)
    assert {name: (column.dtype.name, len(column)) for name, column in columns.items()} == {
        "strips": ("uint8", 3 * 12 - 4),
        "weights": ("uint16", cells),
        "scores": ("float32", cells),
        "reasons": ("uint8", cells // 2),
        "totals": ("float32", 2 * (3 + 3 + 2 + 2)),
    }
    assert columns["strips"][:4].tolist() == [0, 23, 46, 69]
    np.testing.assert_allclose(columns["weights"][:18] / 65535, given.lanes[0].maps[0].weights.ravel(), atol=1e-5)
    assert data["candidates"][0][1] == ["</s>", 2, 0.25, True]


@pytest.mark.parametrize(
    "changes", [{"lanes": []}, {"look": (4, 0, 0, 0)}, {"look": (3, 1, 1, 3)}, {"look": (3, -1, 0, 0)}]
)
def test_what_does_not_fit_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 (each has a text of its own)
        picture(**changes)


def test_maps_of_other_tokens_are_refused() -> None:
    lanes = picture().lanes
    with pytest.raises(ValueError, match="do not fit"):
        picture(lanes=[lanes[0], replace(lanes[1], maps=[maps("cross", 0, 2, 2)])])
    with pytest.raises(ValueError, match="are not those of 3 tokens"):
        picture(lanes=[replace(lanes[0], embedded=np.zeros((2, 4))), lanes[1]])


def test_numbers_of_a_press_are_counts() -> None:
    press = component._pressed({"does": "write", "seq": 1, "row": -1, "token": "7", "layer": True})
    assert press == component.Press("write")


def test_files_are_whole() -> None:
    page = component.to_html(picture())
    assert page.count("</script>") == 1
    assert "http://" not in page.replace("http://www.w3.org", "")


SCRIPT = """
import streamlit as st
from tests.components.test_whole_model_picture import picture
from vizformer.components import whole_model_picture

st.session_state.found = whole_model_picture.pressed("picture")
whole_model_picture.mount(picture(), key="picture")
"""


def test_a_press_is_answered_once() -> None:
    app = AppTest.from_string(SCRIPT, default_timeout=20).run()
    assert not app.exception
    assert app.session_state["found"] is None
    assert sent(app)["words"]["norm"] == "Add & Norm"
    for seq, token in ((1.0, 5), (2.0, 5), (3.0, 7)):
        app.session_state["picture"] = {"selected": {"does": "write", "row": 1, "token": token, "seq": seq}}
        found = app.run().session_state["found"]
        assert (found.does, found.row, found.token) == ("write", 1, token)
        assert app.run().session_state["found"] is None  # not again when the page runs again


@pytest.mark.parametrize(
    "nonsense",
    [None, "write", {}, {"does": "write"}, {"does": "run", "seq": 1}, {"does": "heads", "kind": "x", "seq": 1}],
)
def test_nonsense_from_a_browser(nonsense: object) -> None:
    app = AppTest.from_string(SCRIPT, default_timeout=20).run()
    app.session_state["picture"] = {"selected": nonsense}
    assert app.run().session_state["found"] is None
    assert not app.exception
