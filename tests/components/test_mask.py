"""The mask view: what goes to the browser, and what comes back."""

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from streamlit.testing.v1 import AppTest

from vizformer.components import mask
from vizformer.components.mask import ENGLISH, LARGEST, MaskView, to_html

SCRIPT = """
import numpy as np
import streamlit as st
from vizformer.components import mask

own = np.array([[0, 2], [0, 0]])
kept = st.session_state.get("kept", ())
st.session_state.peeked = mask.peek(key="paint", selected=kept)
view = mask.MaskView(["<b>", "我"], ["a", "b"], own, weights=np.full((2, 2), 0.25), own=own)
st.session_state.kept = mask.mount(view, paintable=True, selected=kept, key="paint")
"""


def sent(app: AppTest, index: int = 0) -> dict[str, Any]:
    """The data of a component as the browser gets it, columns decoded."""
    proto = app.get("bidi_component")[index].proto
    if proto.WhichOneof("data") == "json":
        found: dict[str, Any] = json.loads(proto.json)
        return found
    data: dict[str, Any] = json.loads(proto.mixed.json)
    blobs = proto.mixed.arrow_blobs
    for name, value in data.items():
        place = next(iter(value.values())) if isinstance(value, dict) and len(value) == 1 else None
        if isinstance(place, str) and place in blobs:
            data[name] = pa.ipc.open_stream(blobs[place].data).read_all()[0].to_numpy()
    return data


def test_numbers_travel_as_columns_and_words_beside_them() -> None:
    app = AppTest.from_string(SCRIPT, default_timeout=20).run()
    assert not app.exception
    data = sent(app)
    assert data["queries"] == ["<b>", "我"]
    assert data["panels"] == ["mask", "weights"]
    assert data["reasons"].tolist() == data["own"].tolist() == [0, 2, 0, 0]
    assert data["weights"].dtype == np.float32
    assert data["words"]["reason_2"] == ENGLISH["reason_2"]
    assert app.session_state.kept == ()


@pytest.mark.parametrize(
    ("report", "expected"),
    [
        ({"flips": [[1, 0], [0, 1]]}, ((0, 1), (1, 0))),
        ({"flips": [[0, LARGEST], [-1, 0], [True, 0], ["0", 1], [0], 3, [1, 1]]}, ((1, 1),)),
        ({"flips": "all"}, ()),
        ({}, ()),
    ],
)
def test_reports_are_read_carefully(report: dict[str, object], expected: tuple[object, ...]) -> None:
    app = AppTest.from_string(SCRIPT, default_timeout=20).run()
    app.session_state["paint"] = {"selected": report}
    app.run()
    assert not app.exception
    assert app.session_state.kept == app.session_state.peeked == expected


def test_the_page_can_ask_for_other_cells() -> None:
    app = AppTest.from_string(SCRIPT, default_timeout=20).run()
    version = sent(app)["version"]
    app.session_state["kept"] = ((1, 1),)
    app.run()
    assert sent(app)["selected"] == {"flips": [[1, 1]]}
    assert sent(app)["version"] > version


def test_long_texts_are_cut() -> None:
    n = LARGEST + 5
    html = to_html(MaskView([str(i) for i in range(n)], ["k"] * n, np.zeros((n, n), int)))
    assert f'"{LARGEST - 1}"' in html
    assert f'"{LARGEST}"' not in html


def test_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="weights of shape"):
        MaskView(["a"], ["b"], np.zeros((1, 1), int), weights=np.zeros((2, 1)))


def test_the_component_is_listed() -> None:
    import vizformer.components

    assert vizformer.components.mask is mask
