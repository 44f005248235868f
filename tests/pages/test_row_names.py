"""Rows of a decoder say which token they choose, on every page that draws them."""

import html
import json
import re

import pytest

from tests.pages.reading import chart
from vizformer.web.widgets import map_words

CROSS = {"site": "cross", "layer": 2, "head": 0}


def component(app, name: str) -> dict:
    (found,) = (p.proto for p in app.get("bidi_component") if p.proto.component_name.endswith(name))
    return json.loads(found.mixed.json)


@pytest.mark.parametrize(
    ("page", "name", "link"),
    [
        ("pages/explore/attention.py", "vizformer_attention", CROSS),
        ("pages/explore/attention.py", "vizformer_lines", {**CROSS, "picture": "lines"}),
        ("pages/learn/heads.py", "vizformer_attention", {**CROSS, "part": "all"}),
    ],
)
def test_maps_and_lines_name_what_a_row_chooses(open_app, page, name, link):
    data = component(open_app(page, **link), name)
    assert data["query_tokens"][:3] == ["<s> → I", "I → have", "have → a"]
    assert data["query_tokens"][4] == "cat → ."  # it looks at the end of the source, and that is why
    assert "猫" in data["key_tokens"]  # columns choose nothing


@pytest.mark.parametrize("kind", ["causal", "cross"])
def test_masks_name_it_too(open_app, kind):
    data = component(open_app("pages/learn/masks.py", dials=f"masks.kind:{kind}"), "vizformer_mask")
    assert json.dumps(data, ensure_ascii=False).count("I → have") == 1


def rows_of_tables(app) -> list[str]:
    """The first cell of every row of the tables with hatched cells."""
    bodies = [element.proto.body for element in app.get("html") if "<table>" in element.proto.body]
    return [html.unescape(name) for body in bodies for name in re.findall(r"<tr><th[^>]*>([^<]*)</th><td", body)]


def test_four_notations_and_the_mixed_up_weights_name_it(open_app):
    app = open_app("pages/learn/masks.py", part="conventions", dials="masks.mixed:1")
    expected = ["<s> → I", "I → have", "have → a", "a → cat", "cat → .", ". → </s>"]
    assert rows_of_tables(app) == expected  # the weights where two notations are mixed up
    for index in range(4):
        assert [html.unescape(name) for name in chart(app, index)["layout"]["yaxis"]["ticktext"]] == expected


@pytest.mark.parametrize("mistake", ["after", "zero"])
def test_four_mistakes_name_it_where_a_query_is_chosen_and_in_the_sums_of_all_rows(open_app, mistake):
    app = open_app("pages/learn/masks.py", part="mistakes", dials=f"masks.mistake:{mistake}")
    assert "4 · cat → ." in app.selectbox(key="setting.masks.query").options
    assert any("<th>4 · cat → .</th>" in element.proto.body for element in app.get("html"))


def test_leakage_names_it_below_the_outputs_and_not_where_a_token_is_replaced(open_app):
    app = open_app("pages/learn/masks.py", part="leak")
    for index in range(2):
        assert chart(app, index)["layout"]["xaxis"]["ticktext"][:2] == ["&lt;s&gt; → I", "I → have"]
    assert "4 · cat" in app.selectbox(key="setting.masks.at").options


def test_attention_on_paper_names_it(open_app):
    layout = chart(open_app("pages/learn/paper.py", model="stories", text="I have a cat."), 0)["layout"]
    assert layout["yaxis"]["ticktext"][1:3] == ["I → have", "have → a"]
    assert layout["xaxis"]["ticktext"][1:3] == ["I", "have"]  # columns choose nothing


@pytest.mark.parametrize(
    ("page", "link"),
    [("masks", {"part": part}) for part in ("conventions", "mistakes", "leak")] + [("paper", {})],
)
def test_the_rows_of_an_encoder_choose_nothing_there_either(open_app, page, link):
    app = open_app(f"pages/learn/{page}.py", model="cloze", **link)
    assert not app.exception
    assert not any(map_words.ARROW in element.proto.body for element in app.get("html"))
    assert not any(map_words.ARROW in picture.proto.spec for picture in app.get("plotly_chart"))
    assert not any(map_words.ARROW in option for box in app.selectbox for option in box.options)


def test_the_boxes_that_choose_a_query_name_it(open_app):
    app = open_app("pages/learn/qkv.py", part="arithmetic", **CROSS)
    assert "4 · cat → ." in app.selectbox(key="view.query").options


def test_a_layer_by_hand_names_it_in_its_tables(open_app):
    app = open_app("pages/learn/layer.py", site="decoder", step=5)
    assert any("cat → ." in element.proto.body for element in app.get("html"))


def test_a_sentence_says_it_of_the_row_that_is_looked_at(open_app):
    app = open_app("pages/explore/attention.py", query=3, **CROSS)
    assert any("row 3, after “a”, predicts “cat”" in caption.value for caption in app.caption)
    app = open_app("pages/explore/attention.py", locale="zh-CN", query=3, **CROSS)
    assert any("第 3 行在“a”之后，预测“cat”" in caption.value for caption in app.caption)


def test_a_typed_target_is_kept_apart_from_the_models_own_choice(open_app):
    app = open_app("pages/explore/attention.py", query=3, target="I have a dog.", **CROSS)
    assert component(app, "vizformer_attention")["query_tokens"][3] == "a → dog"
    assert any("continues with “dog”" in c.value and "itself predicts “cat”" in c.value for c in app.caption)


@pytest.mark.parametrize("link", [{"site": "encoder"}, {"model": "cloze", "site": "encoder"}])
def test_an_encoders_rows_choose_nothing(open_app, link):
    app = open_app("pages/explore/attention.py", **link)
    assert not any(map_words.ARROW in name for name in component(app, "vizformer_attention")["query_tokens"])
