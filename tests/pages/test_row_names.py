"""Rows of a decoder say which token they choose, on every page that draws them."""

import json

import pytest

from vizformer.web.widgets import row_names

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


def test_the_boxes_that_choose_a_query_name_it(open_app):
    app = open_app("pages/learn/qkv.py", part="arithmetic", **CROSS)
    assert "4 · cat → ." in app.selectbox(key="view.query").options


def test_a_layer_by_hand_names_it_in_its_tables(open_app):
    app = open_app("pages/learn/layer.py", site="decoder", step=5)
    assert any("cat → ." in element.proto.body for element in app.get("html"))


def test_a_sentence_says_it_of_the_row_that_is_looked_at(open_app):
    app = open_app("pages/explore/attention.py", query=3, **CROSS)
    assert any("row 3, after “a”, chooses “cat”" in caption.value for caption in app.caption)
    app = open_app("pages/explore/attention.py", locale="zh-CN", query=3, **CROSS)
    assert any("第 3 行在“a”之后，选出“cat”" in caption.value for caption in app.caption)


def test_a_typed_target_is_kept_apart_from_the_models_own_choice(open_app):
    app = open_app("pages/explore/attention.py", query=3, target="I have a dog.", **CROSS)
    assert component(app, "vizformer_attention")["query_tokens"][3] == "a → dog"
    assert any("asked for “dog”" in c.value and "would choose “cat”" in c.value for c in app.caption)


@pytest.mark.parametrize("link", [{"site": "encoder"}, {"model": "cloze", "site": "encoder"}])
def test_an_encoders_rows_choose_nothing(open_app, link):
    app = open_app("pages/explore/attention.py", **link)
    assert not any(row_names.ARROW in name for name in component(app, "vizformer_attention")["query_tokens"])
