"""The line view on the attention page: what it shares with the map and with the link."""

import json

import numpy as np
import pyarrow as pa
import pytest

from tests.bundled import load
from vizformer.components import lines as component
from vizformer.web.pages.attention import heads as head_lines

PAGE = "pages/explore/attention.py"


def lines(app) -> dict:
    """What the component on the page is told (without its numbers)."""
    (found,) = (
        part.proto for part in app.get("bidi_component") if part.proto.component_name.endswith("vizformer_lines")
    )
    return json.loads(found.mixed.json)


def link(app) -> dict[str, str]:
    return {name: value[-1] if isinstance(value, list) else value for name, value in app.query_params.items()}


def choose(app, **selection) -> None:
    data = lines(app)
    app.session_state["lines"] = {"selected": {**data["selected"], **selection, "version": data["version"], "seq": 1}}
    app.run()


def test_the_link_opens_the_lines_where_they_were(open_app):
    app = open_app(PAGE, picture="lines", site="cross", layer=2, head=1, query=3)
    assert not app.exception
    data = lines(app)
    assert data["held"] == "all"
    assert data["shape"][:2] == [3, 4]
    assert data["selected"] == {"layer": 2, "heads": [1], "pinned": {"side": "query", "index": 3}, "threshold": 0.04}
    assert data["query_tokens"][0] == "<s> → I"  # English on the left looks at Chinese on the right
    assert "猫" in data["key_tokens"]


def test_what_is_chosen_goes_into_the_link(open_app):
    app = open_app(PAGE, picture="lines")
    choose(app, layer=2, heads=[2], pinned={"side": "query", "index": 4})
    assert link(app) == {"picture": "lines", "layer": "2", "head": "2", "query": "4"}
    choose(app, layer=1, heads=[0, 2, 3], pinned={"side": "key", "index": 1})
    assert link(app) == {"picture": "lines", "layer": "1", "head": "2", "query": "4", "lines": "0,2,3@k1"}
    choose(app, layer=0, heads=[0, 3], pinned=None, threshold=0.2)
    said = {"picture": "lines", "query": "4", "lines": "0,3@0.2@-"}
    assert link(app) == said | {"layer": "0", "head": "0"}  # the first of those that are left; it was chosen
    again = lines(open_app(PAGE, **said))["selected"]
    assert again == {"layer": 0, "heads": [0, 3], "pinned": None, "threshold": 0.2}
    assert lines(open_app(PAGE, picture="lines", lines="0,2@k1"))["selected"]["pinned"] == {"side": "key", "index": 1}


def test_map_and_lines_show_the_same_head(open_app):
    app = open_app(PAGE, picture="lines")
    choose(app, layer=2, heads=[3], pinned={"side": "query", "index": 1})
    app.button_group(key="view.picture").set_value("map").run()
    (heads,) = (p.proto for p in app.get("bidi_component") if p.proto.component_name.endswith("vizformer_attention"))
    chosen = json.loads(heads.mixed.json)["selected"]
    assert (chosen["layer"], chosen["head"], chosen["query"]) == (2, 3, 1)
    version = json.loads(heads.mixed.json)["version"]
    app.session_state["heads"] = {"selected": {**chosen, "layer": 0, "head": 2, "version": version, "seq": 1}}
    app.run()
    app.button_group(key="view.picture").set_value("lines").run()
    assert lines(app)["selected"]["heads"] == [2]
    assert lines(app)["selected"]["layer"] == 0


@pytest.mark.parametrize("site", ["encoder", "decoder", "cross"])
def test_the_words_are_translated(open_app, site):
    app = open_app(PAGE, locale="zh-CN", picture="lines", site=site)
    assert not app.exception
    assert lines(app)["words"]["queries"] == "查询"
    assert app.button_group(key="view.picture").options == ["热力图", "连线", "文本"]


def test_nonsense_in_the_link_is_told(open_app):
    app = open_app(PAGE, picture="poster")
    assert not app.exception
    assert any("“picture” to “poster”" in info.value for info in app.info)


def columns(app) -> dict[str, np.ndarray]:
    """The numbers that the component is told."""
    (found,) = (p.proto for p in app.get("bidi_component") if p.proto.component_name.endswith("vizformer_lines"))
    sent = [pa.ipc.open_stream(blob.data).read_all() for blob in found.mixed.arrow_blobs.values()]
    return {one.column_names[0]: one.column(0).to_numpy() for one in sent}


def test_heads_together_are_a_map_where_a_link_asks_for_lines(open_app):
    app = open_app(
        PAGE, model="stories", site="decoder", text="Lily saw a cat.", picture="lines", over="rollout", head=0
    )
    assert not app.exception
    assert not any(one.proto.component_name.endswith("vizformer_lines") for one in app.get("bidi_component"))
    assert any("are shown as a map" in caption.value for caption in app.caption)
    app.radio(key="view.over").set_value("one").run()
    assert lines(app)["selected"]["heads"] == [0]


def test_of_a_text_that_is_too_long_a_part_is_shown_with_the_weights_of_the_whole(open_app, monkeypatch):
    monkeypatch.setattr(component, "fits", lambda *_, **__: False)
    monkeypatch.setattr(head_lines, "TOKENS", 4)
    text = "Lily saw a small cat in the park."
    app = open_app(PAGE, model="stories", picture="lines", text=text, layer=1, head=2, query=6, lines="@w5")
    assert not app.exception
    data = lines(app)
    assert (data["first"], data["shape"][2:], data["held"]) == ([5, 5], [4, 4], "layer")
    assert data["selected"]["pinned"] == {"side": "query", "index": 1}
    trace = load("stories").trace(text)
    np.testing.assert_allclose(
        columns(app)["weights"].reshape(-1, 4, 4)[2], trace["decoder.1.self"].pattern(2)[5:9, 5:9], atol=1e-6
    )
    choose(app, heads=[0, 2], pinned={"side": "key", "index": 3})
    assert (link(app)["query"], link(app)["lines"]) == ("6", "0,2@k8@w5")
    app.slider(key="attention.lines.start").set_value(1).run()
    assert link(app)["lines"] == "0,2@k8@w1"  # key 8 is kept, though it is not in sight
    assert (lines(app)["first"], lines(app)["selected"]["pinned"]) == ([1, 1], None)
    app.slider(key="attention.lines.start").set_value(5).run()
    assert lines(app)["selected"]["pinned"] == {"side": "key", "index": 3}


def test_the_part_of_a_long_text_is_that_around_the_query(open_app, monkeypatch):
    monkeypatch.setattr(component, "fits", lambda *_, **__: False)
    monkeypatch.setattr(head_lines, "TOKENS", 4)
    app = open_app(PAGE, picture="lines", site="cross", text="我昨天在公园里看见一只很小的猫。", query=6)
    assert not app.exception
    data, tokens = lines(app), load("zh-en").trace("我昨天在公园里看见一只很小的猫。").tokens
    assert data["first"] == [4, 4]
    assert data["key_tokens"] == [token.text for token in tokens["encoder"][4:8]]
    assert data["query_tokens"][2].startswith(tokens["decoder"][6].text.strip())
    n = max(map(len, tokens.values()))
    said = (
        f"[Tokens](#term-token) 4 to 7 of {n}. The weights are those of the whole text; lines to tokens outside of this "
        "part are not drawn."
    )
    assert said in [one.value for one in app.caption]
