"""The walk: what travels to the browser, what is refused, and a link that is followed once."""

from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from tests.components.test_mount import sent
from vizformer.components import walkthrough
from vizformer.components.walkthrough import Candidates, Lines, Piece, Scene, Strips, Walk

TOKENS = [Piece("我", 7, 0, 1), Piece("有", 8, 1, 2), Piece("</script>", 9, 2, 11), Piece("</s>", 2, special=True)]
KINDS = ("characters", "tokens", "vectors", "added", "attention", "residual", "layers", "cross", "next", "written")


def lines(queries: int, keys: int, query: int, key: int) -> Lines:
    weights = np.random.default_rng(0).random((queries, keys)) + 0.01
    blocked = np.zeros((queries, keys), bool)
    blocked[query, (key + 1) % keys] = True
    weights[blocked] = 0
    weights /= weights.sum(axis=1, keepdims=True)
    names = [f"row {i}" for i in range(queries)], [f"key {i}" for i in range(keys)]
    return Lines(*names, query, key, weights, blocked, np.zeros(queries))


def walk(**changes: Any) -> Walk:
    """Four tokens of rows of eight numbers; an encoder-decoder's scenes."""
    rng = np.random.default_rng(1)
    embedded, added = rng.standard_normal((2, 4, 8))
    values: dict[str, Any] = {
        "scenes": [Scene(kind, kind.title(), f"The caption of {kind}.", f"More of {kind}", 5.0) for kind in KINDS],
        "characters": list("我有</script>"),
        "tokens": TOKENS,
        "followed": 1,
        "note": "All numbers are drawn.",
        "embedded": embedded,
        "added": added,
        "entering": embedded + added,
        "angles": None,
        "bias": None,
        "attention": lines(4, 4, 1, 2),
        "sublayers": Strips(
            ["before", "brought", "between", "after"], rng.standard_normal((4, 8)), [1.0, 2.0, 3.0, 2.5]
        ),
        "layers": Strips(["start", "after"], rng.standard_normal((2, 8)), [1.0, 2.0], [1.0, 0.5]),
        "cross": lines(3, 4, 2, 1),
        "next": Candidates(["cat", "<b>", "dog"], [0.7, 0.2, 0.0001], 0),
        "written": Candidates(["<s> → a", "a → cat", "cat → ."], [0.9, 0.7, 0.8]),
        "name": "one",
    }
    return Walk(**{**values, **changes})


def test_what_travels() -> None:
    given = walk()
    data, columns = walkthrough._data(given)
    assert [scene["kind"] for scene in data["scenes"]] == list(KINDS)
    assert data["tokens"][3] == {"text": "</s>", "id": 2, "start": 0, "end": 0, "special": True}
    assert {name: column.dtype.name for name, column in columns.items() if column.dtype != np.float32} == {
        "attention_blocked": "uint8",
        "cross_blocked": "uint8",
    }
    assert np.array_equal(columns["entering"], given.entering.astype(np.float32).ravel())
    assert sum(column.nbytes for column in columns.values()) < 2000
    assert data["attention"]["key"] == 2
    assert columns["cross_weights"].shape == (12,)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (dict(followed=4), "token 4 of 4 cannot be followed"),
        (dict(scenes=[]), "through 0 scenes"),
        (dict(added=np.zeros((3, 8))), "added of shape"),
        (dict(entering=np.zeros((4, 7))), "entering of shape"),
        (dict(layers=Strips(["start"], np.zeros((2, 8)))), "are not 1 rows"),
        (
            dict(cross=lines(3, 4, 0, 0).__class__(["a"], ["b"], 0, 0, np.ones((2, 1)), np.zeros((2, 1), bool), [0])),
            "fit",
        ),
        (dict(added=None), "nothing to draw in the scene 'added'"),
        (dict(next=None), "nothing to draw in the scene 'next'"),
        (dict(cross=None), "nothing to draw in the scene 'cross'"),
    ],
)
def test_parts_that_do_not_fit_are_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        walk(**changes)


@pytest.mark.parametrize(
    "nonsense",
    [None, 3, [], {}, {"scene": "next"}, {"scene": "nowhere", "seq": 1}, {"scene": ["next"], "seq": 1}, {"seq": 1}],
)
def test_nonsense_from_a_browser(nonsense: object) -> None:
    assert walkthrough._followed(nonsense)[0] is None


def test_files_are_whole() -> None:
    page = walkthrough.to_html(walk())
    assert page.count("</script>") == 1
    assert "http://" not in page.replace("http://www.w3.org", "")


SCRIPT = """
import streamlit as st
from tests.components.test_walkthrough import walk
from vizformer.components import walkthrough

st.session_state.found = walkthrough.mount(walk(), key="walk")
"""


def test_a_link_is_followed_once() -> None:
    app = AppTest.from_string(SCRIPT, default_timeout=20).run()
    assert not app.exception
    assert app.session_state["found"] is None
    data = sent(app)
    assert data["words"]["pause"] == "Pause"
    assert data["embedded"].dtype == np.float32
    for seq, scene in ((1.0, "vectors"), (2.0, "vectors"), (3.0, "cross")):
        app.session_state["walk"] = {"selected": {"scene": scene, "seq": seq}}
        assert app.run().session_state["found"] == scene
        assert app.run().session_state["found"] is None  # it is not followed again when the page runs again
