"""The line view without a browser: what travels to it, what comes back, and colours that everybody can tell apart."""

import itertools
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from tests.components.test_mount import sent
from vizformer.components import attention, lines
from vizformer.components.lines import LineSelection, Pin, pack_heads, pack_layer

SCRIPT = """
import numpy as np
import streamlit as st
from vizformer.components import lines

weights = np.random.default_rng(0).dirichlet(np.ones(4), size=(2, 3, 2)).astype(np.float32)
reasons = np.array([[0, 0, 0, 1], [0, 0, 0, 1]], np.uint8)
if st.session_state.get("one layer"):
    wanted = st.session_state.get("wanted", lines.LineSelection())
    layer = min(lines.peek(key="lines", selected=wanted).layer, 1)
    payload = lines.pack_layer(weights[layer], reasons, layer=layer, layers=2)
else:
    payload = lines.pack_heads(weights, None, reasons)
st.session_state.wanted = lines.mount(
    payload, query_tokens=["<b>", "我"], key_tokens=list("abcd"), key="lines", words={"keys": "键"},
    selected=st.session_state.get("wanted", lines.LineSelection(1, (2, 0), lines.Pin("key", 3), 0.25)),
)
"""

WEIGHTS = np.random.default_rng(0).dirichlet(np.ones(4), size=(2, 3, 2)).astype(np.float32)
START = {"layer": 1, "heads": [0, 2], "pinned": {"side": "key", "index": 3}, "threshold": 0.25}


@pytest.fixture
def app() -> AppTest:
    return AppTest.from_string(SCRIPT, default_timeout=20).run()


def report(app: AppTest, **value: Any) -> None:
    app.session_state["lines"] = {"selected": {**value, "version": sent(app)["version"], "seq": 1}}
    app.run()


def test_the_numbers_travel_as_columns(app: AppTest) -> None:
    assert not app.exception
    data = sent(app)
    assert data["weights"].dtype == np.float32
    assert np.array_equal(data["weights"], WEIGHTS.ravel())
    assert "scores" not in data
    assert data["reasons"].tolist() == [0, 0, 0, 1] * 2
    assert data["shape"] == [2, 3, 2, 4]
    assert (data["held"], data["chosen"]) == ("all", None)
    assert data["query_tokens"] == ["<b>", "我"]
    assert (data["words"]["keys"], data["words"]["queries"]) == ("键", "queries")
    assert data["selected"] == START


def test_a_choice_comes_back_and_sends_nothing(app: AppTest) -> None:
    before = app.get("bidi_component")[0].proto.SerializeToString()
    report(app, layer=0, heads=[1], pinned={"side": "query", "index": 1}, threshold=0.01)
    for _ in range(2):
        assert app.session_state.wanted == LineSelection(0, (1,), Pin("query", 1), 0.01)
        assert app.get("bidi_component")[0].proto.SerializeToString() == before
        app.run()


def test_the_page_can_move_the_selection(app: AppTest) -> None:
    version = sent(app)["version"]
    app.session_state["wanted"] = LineSelection(0, None, None, 1.0)
    app.run()
    assert sent(app)["version"] > version
    assert sent(app)["selected"] == {"layer": 0, "heads": [0, 1, 2], "pinned": None, "threshold": 1.0}


@pytest.mark.parametrize(
    "nonsense",
    [
        {"layer": 99, "heads": [7, -1, "x", True, 2.5], "pinned": {"side": "top", "index": 0}, "threshold": "much"},
        {"layer": True, "heads": "01", "pinned": [1], "threshold": 7},
        {"heads": [], "pinned": {"side": "query", "index": 10**9}, "threshold": True},
        {"pinned": {"side": "key", "index": -4}},
        {},
        "text",
        None,
    ],
)
def test_nonsense_from_a_browser_becomes_a_selection_that_exists(app: AppTest, nonsense: object) -> None:
    app.session_state["lines"] = {"selected": nonsense}
    app.run()
    assert not app.exception
    chosen = app.session_state.wanted
    assert 0 <= chosen.layer < 2
    assert chosen.heads
    assert set(chosen.heads) <= {0, 1, 2}
    assert 0 <= chosen.threshold <= 1
    if chosen.pinned is not None:
        assert 0 <= chosen.pinned.index < {"query": 2, "key": 4}[chosen.pinned.side]


def test_one_layer_at_a_time(app: AppTest) -> None:
    app.session_state["one layer"] = True
    app.run()
    assert (sent(app)["held"], sent(app)["chosen"], sent(app)["shape"]) == ("layer", [1, 0], [2, 3, 2, 4])
    assert np.array_equal(sent(app)["weights"], WEIGHTS[1].ravel())
    report(app, **{**START, "layer": 0})
    assert np.array_equal(sent(app)["weights"], WEIGHTS[0].ravel())
    assert app.session_state.wanted.layer == 0
    assert "thumbs" not in sent(app)


def test_payloads_that_do_not_fit_the_picture_are_refused() -> None:
    weights = np.full((2, 2, 40, 40), 1 / 40, np.float32)
    names = [str(i) for i in range(40)]
    with pytest.raises(ValueError, match="pack_lines"):
        lines.to_html(pack_heads(weights, limit=1), query_tokens=names, key_tokens=names)
    with pytest.raises(ValueError, match="pack them with pack"):
        attention.to_html(pack_layer(weights[0], layer=0, layers=2), query_tokens=names, key_tokens=names)
    with pytest.raises(ValueError, match=r"\(2, 40, 39\)"):
        lines.to_html(pack_heads(weights), query_tokens=names, key_tokens=names[1:])
    with pytest.raises(ValueError, match="layer 2 is not among 2"):
        pack_layer(weights[0], layer=2, layers=2)
    with pytest.raises(ValueError, match="as a map"):
        pack_layer(weights[0], layer=0, layers=2, limit=6399)
    assert pack_layer(weights[0], layer=1, layers=2, limit=6400).chosen == (1, 0)


def test_a_file_needs_neither_torch_nor_streamlit_nor_a_network() -> None:
    import subprocess
    import sys

    code = (
        "import sys, numpy as np; from vizformer.components import lines;"
        "p = lines.pack_heads(np.ones((1, 1, 1, 1), np.float32));"
        "print(lines.to_html(p, query_tokens=['</script>'], key_tokens=['<!--']));"
        "sys.exit(','.join({'torch', 'streamlit', 'plotly'} & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("</script>") == 1
    assert "<!--" not in done.stdout
    assert set(re.findall(r"\w+://[^\"']*", done.stdout)) == {"http://www.w3.org/2000/svg"}  # a name, never fetched


# How colours look to people without red, green or blue cones: linear RGB to linear RGB (Machado and others, 2009).
VISIONS = {
    "normal": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.072175], [0.0193339, 0.119192, 0.9503041]]
)


def linear(colour: str) -> np.ndarray:
    rgb = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def lab(rgb: np.ndarray) -> np.ndarray:
    xyz = TO_XYZ @ np.clip(rgb, 0, 1) / [0.95047, 1, 1.08883]
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize(("scheme", "page"), [("light", "#ffffff"), ("dark", "#0e1117")])
@pytest.mark.parametrize("vision", VISIONS)
def test_colours_of_heads_can_be_told_apart(scheme: str, page: str, vision: str) -> None:
    script = Path(lines.__file__).with_name("js").joinpath("colours.js").read_text(encoding="utf-8")
    palette = re.findall(r"#[0-9a-f]{6}", re.search(rf"const HEADS = .*?{scheme}: \[(.*?)\]", script, re.S)[1])
    assert len(palette) == 8
    seen = [lab(np.array(VISIONS[vision]) @ linear(colour)) for colour in palette]
    differences = [float(np.linalg.norm(a - b)) for a, b in itertools.combinations(seen, 2)]
    assert min(differences) > 16  # a difference of 2 can be seen side by side
    for colour in palette:
        dark, light = sorted((TO_XYZ[1] @ linear(colour), TO_XYZ[1] @ linear(page)))
        assert (light + 0.05) / (dark + 0.05) > 3  # WCAG, for pictures
