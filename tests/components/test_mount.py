"""On a Streamlit page: what travels to the browser, and what comes back."""

import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from streamlit.testing.v1 import AppTest

from vizformer.components import _mount, attention, tokens

SCRIPT = """
import numpy as np
import streamlit as st
from vizformer.components import _mount, attention, tokens

weights = np.linspace(0, 1, 2 * 3 * 2 * 4, dtype=np.float32).reshape(2, 3, 2, 4)
reasons = np.array([[0, 0, 0, 1], [0, 0, 0, 1]], np.uint8)
payload = attention.pack_heads(weights, weights * 10 - 5, reasons)
wanted = st.session_state.get("wanted", attention.Selection(1, 2, 1))
st.session_state.peeked = attention.peek(key="heads", selected=wanted)
st.session_state.wanted = attention.mount(
    payload, query_tokens=["<b>", "我"], key_tokens=list("abcd"), selected=wanted, key="heads",
    words={"weights": "权重"},
)
st.session_state.token = tokens.mount(
    [{"text": "<s>", "special": True, "hover": "id 1"}, {"text": "我", "value": np.float32(0.5)}],
    selected=st.session_state.get("token"), label="Source", key="strip",
)
"""


@pytest.fixture
def app() -> AppTest:
    return AppTest.from_string(SCRIPT, default_timeout=20).run()


def sent(app: AppTest, index: int = 0) -> dict[str, Any]:
    """The data of a component as the browser gets it, columns decoded."""
    import json

    proto = app.get("bidi_component")[index].proto
    if proto.WhichOneof("data") == "json":
        return json.loads(proto.json)
    data = json.loads(proto.mixed.json)
    for name, value in data.items():
        if (
            isinstance(value, dict)
            and len(value) == 1
            and (blob := proto.mixed.arrow_blobs.get(next(iter(value.values()))))
        ):
            data[name] = pa.ipc.open_stream(blob.data).read_all()[0].to_numpy()
    return data


def test_the_numbers_travel_as_columns(app: AppTest) -> None:
    assert not app.exception
    data = sent(app)
    weights = np.linspace(0, 1, 48, dtype=np.float32)
    assert data["weights"].dtype == np.float32
    assert np.array_equal(data["weights"], weights)
    assert data["scores"].dtype == np.float32
    assert np.array_equal(data["scores"], weights * 10 - 5)
    assert data["reasons"].tolist() == [0, 0, 0, 1] * 2
    assert data["shape"] == [2, 3, 2, 4]
    assert data["query_tokens"] == ["<b>", "我"]
    assert data["layer_labels"] == [0, 1]
    assert data["words"]["weights"] == "权重"
    assert data["words"]["scores"] == attention.ENGLISH["scores"]
    assert data["selected"] == {
        "layer": 1,
        "head": 2,
        "query": 1,
        "key": None,
        "view": "weights",
        "order": "layer",
        "colours": "absolute",
    }


def test_a_click_comes_back_and_sends_nothing(app: AppTest) -> None:
    before = app.get("bidi_component")[0].proto.SerializeToString()
    app.session_state["heads"] = {
        "selected": {
            "layer": 0,
            "head": 1,
            "query": 0,
            "key": 3,
            "view": "scores",
            "version": sent(app)["version"],
            "seq": 1,
        }
    }
    app.run()
    expected = attention.Selection(0, 1, 0, 3, "scores")
    assert app.session_state.wanted == expected
    assert app.session_state.peeked == expected
    assert app.get("bidi_component")[0].proto.SerializeToString() == before
    app.run()
    assert app.session_state.wanted == expected
    assert app.get("bidi_component")[0].proto.SerializeToString() == before


def test_the_page_can_move_the_selection(app: AppTest) -> None:
    version = sent(app)["version"]
    app.session_state["wanted"] = attention.Selection(0, 0, 1)
    app.run()
    assert sent(app)["version"] > version
    assert sent(app)["selected"]["head"] == 0
    assert app.session_state.wanted == attention.Selection(0, 0, 1)


@pytest.mark.parametrize(
    "nonsense",
    [
        {"layer": 99, "head": -1, "query": "x", "key": 1e9, "view": "<script>"},
        {"layer": True, "head": None, "query": [1], "key": 2.5},
        {},
        "text",
        None,
        7,
    ],
)
def test_nonsense_from_a_browser_becomes_a_selection_that_exists(app: AppTest, nonsense: object) -> None:
    app.session_state["heads"] = {"selected": nonsense}
    app.run()
    assert not app.exception
    chosen = app.session_state.wanted
    assert 0 <= chosen.layer < 2
    assert 0 <= chosen.head < 3
    assert 0 <= chosen.query < 2
    assert chosen.key is None or 0 <= chosen.key < 4
    assert chosen.view in ("weights", "scores")


def test_a_selection_outside_the_heads_is_cut_to_them(app: AppTest) -> None:
    app.session_state["wanted"] = attention.Selection(50, 50, 50, 50)
    app.run()
    assert app.session_state.wanted == attention.Selection(1, 2, 1, 3)
    assert sent(app)["selected"] == {
        "layer": 1,
        "head": 2,
        "query": 1,
        "key": 3,
        "view": "weights",
        "order": "layer",
        "colours": "absolute",
    }
    version = sent(app)["version"]
    app.run()
    assert sent(app)["version"] == version


def test_the_strip_travels_and_reports(app: AppTest) -> None:
    data = sent(app, 1)
    assert data["tokens"] == [
        {"text": "<s>", "hover": "id 1", "special": True, "value": None},
        {"text": "我", "hover": "", "special": False, "value": 0.5},
    ]
    assert app.session_state.token is None
    app.session_state["strip"] = {"selected": {"index": 1, "version": data["version"], "seq": 4}}
    app.run()
    assert app.session_state.token == 1
    app.session_state["strip"] = {"selected": {"index": 9, "version": data["version"], "seq": 5}}
    app.run()
    assert app.session_state.token is None


def test_labels_that_do_not_fit_are_refused() -> None:
    payload = attention.pack_heads(np.full((1, 1, 2, 2), 0.5, np.float32))
    with pytest.raises(ValueError, match=r"\(1, 3, 2\)"):
        attention.to_html(payload, query_tokens=list("abc"), key_tokens=list("ab"))
    with pytest.raises(ValueError, match=r"\(2, 2, 2\)"):
        attention.to_html(payload, query_tokens=list("ab"), key_tokens=list("ab"), layers=[0, 1])


def test_files_need_neither_torch_nor_streamlit() -> None:
    import subprocess

    code = (
        "import sys, numpy as np; from vizformer.components import attention, tokens;"
        "p = attention.pack_heads(np.ones((1, 1, 1, 1), np.float32));"
        "attention.to_html(p, query_tokens=['a'], key_tokens=['a']); tokens.to_html([{'text': 'a'}]);"
        "sys.exit(','.join({'torch', 'streamlit', 'plotly'} & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_file_cannot_be_broken_out_of_and_loads_nothing() -> None:
    payload = attention.pack_heads(np.ones((1, 1, 1, 1), np.float32))
    page = attention.to_html(
        payload, query_tokens=["</script><script>alert(1)</script>"], key_tokens=["<!--"], title="<i>"
    )
    assert page.count("</script>") == 1
    assert "<!--" not in page
    assert "<title>&lt;i&gt;</title>" in page
    assert "http://" not in page
    assert "https://" not in page
    assert "</script>" not in tokens.to_html([{"text": "</script>"}]).rsplit("</script>", 1)[0]


def test_a_notebook_shows_a_file_in_a_frame() -> None:
    frame = tokens.to_html([{"text": '"quoted"'}])._repr_html_()
    before, inside = frame.split('<iframe srcdoc="&lt;!doctype html&gt;')
    assert inside.count('"') == 3  # two attributes: nothing inside ends them early
    assert "trust the notebook" in before


def test_a_key_may_hold_any_text_of_a_reader(monkeypatch) -> None:
    """Streamlit knows no component whose key has two underscores: "Fill in the ____"."""
    for text in ("____", "___", "a__b", "_", "\u2017", "\n", "\x00", "’😀", "x" * 10_000):
        app = AppTest.from_string(SCRIPT.replace('key="strip"', f'key="strip " + {text!r}')).run()
        assert not app.exception, text
        assert sent(app, 1)["key"] == f"strip {text}"
        app.session_state[_mount.streamlit_key(f"strip {text}")] = {"selected": {"index": 1, "seq": 1}}
        assert app.run().session_state.token == 1
