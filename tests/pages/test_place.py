"""What links say about a place in the model: which part of a lesson they open, and the query where they name none."""

import json

import pytest

from tests.bundled import load
from tests.pages.conftest import Open

QKV, HEADS, ATTENTION = "pages/learn/qkv.py", "pages/learn/heads.py", "pages/explore/attention.py"
TEXT = "The cat sat on the chair."
TOLD = [
    ("stories", TEXT, "decoder"),
    ("zh-en", "我有一只猫。", "encoder"),
    ("cloze", "She opened the door.", "encoder"),
]


def link(app) -> dict[str, str]:
    return {name: value[-1] if isinstance(value, list) else value for name, value in app.query_params.items()}


def part(app) -> str:
    (tabs,) = (control for control in app.button_group if control.key == "lesson.part.qkv")
    return tabs.value


def heads(app, key: str) -> dict:
    """What the map of the heads is told."""
    (found,) = (p.proto for p in app.get("bidi_component") if p.proto.component_name.endswith("vizformer_attention"))
    data: dict = json.loads(found.mixed.json)
    app.session_state[key]  # the component's own memory has this name
    return data


# --- the first part of Query, key, value ---


@pytest.mark.parametrize("place", [{}, {"model": "stories", "text": TEXT}, {"lang": "zh_CN"}])
def test_the_lesson_begins_with_the_soft_look_up(open_app: Open, place: dict) -> None:
    app = open_app(QKV, **place)
    assert not app.exception
    assert part(app) == "lookup"
    assert "part" not in link(app)


@pytest.mark.parametrize("place", [{"head": 2}, {"query": 0}, {"layer": 1}, {"site": "cross"}, {"step": 5}])
def test_a_link_to_a_place_in_the_model_opens_its_arithmetic(open_app: Open, place: dict) -> None:
    app = open_app(QKV, **place)
    assert not app.exception
    assert part(app) == "arithmetic"
    assert link(app) == {name: str(value) for name, value in place.items()}
    app = open_app(QKV, part="lookup", **place)
    assert part(app) == "lookup"


def test_a_place_chosen_in_the_look_up_stays_in_the_look_up(open_app: Open) -> None:
    app = open_app(QKV)
    layer, head = (app.selectbox(key=f"view.{name}").value for name in ("layer", "head"))
    app.selectbox(key="view.head").set_value((head + 1) % 4).run()
    assert part(app) == "lookup"
    assert link(app) == {"layer": str(layer), "head": str((head + 1) % 4), "part": "lookup"}
    app.text_input(key="view.text").set_value("他喜欢喝水。").run()
    assert part(app) == "lookup"


def test_from_another_lesson_it_begins_at_the_beginning(open_app: Open) -> None:
    app = open_app(HEADS, head=2, part="split")
    app.switch_page(QKV).run()
    assert part(app) == "lookup"
    assert link(app) == {"head": "2", "part": "lookup"}


def test_the_way_from_the_heads_leads_to_the_arithmetic(open_app: Open) -> None:
    app = open_app(ATTENTION)
    app.button(key="attention.steps").click().run()
    assert app.title[0].value == "Query, key, value"
    assert part(app) == "arithmetic"


# --- the query ---


@pytest.mark.sample(1)
@pytest.mark.parametrize(("model", "text", "site"), TOLD)
def test_every_page_shows_the_last_word_of_the_text_unless_the_link_names_a_query(
    open_app: Open, model: str, text: str, site: str
) -> None:
    tokens = load(model).trace(text).tokens[site]
    last = max(i for i, token in enumerate(tokens) if token.text in ("chair", "猫", "door"))
    for query in (None, 0, 2):
        chosen = {} if query is None else {"query": query}
        shown = last if query is None else query
        for wanted in ("lookup", "arithmetic"):
            app = open_app(QKV, part=wanted, model=model, text=text, site=site, **chosen)
            assert app.selectbox(key="view.query").value == shown
            assert link(app).get("query") == (None if query is None else str(query))
        app = open_app(HEADS, part="split", model=model, text=text, site=site, **chosen)
        assert app.selectbox(key="view.query").value == shown
        assert f"token {shown}," in json.loads(app.get("plotly_chart")[0].proto.spec)["layout"]["title"]["text"]
        app = open_app(HEADS, part="all", model=model, text=text, site=site, **chosen)
        assert heads(app, "heads.grid")["selected"]["query"] == shown
        app = open_app(ATTENTION, model=model, text=text, site=site, **chosen)
        assert heads(app, "heads")["selected"]["query"] == shown
        assert link(app).get("query") == (None if query is None else str(query))


def test_the_usual_query_follows_the_text_and_a_chosen_one_stays(open_app: Open) -> None:
    app = open_app(QKV, model="stories", text=TEXT, site="decoder", part="lookup")
    assert app.selectbox(key="view.query").value == 6
    app.text_input(key="view.text").set_value("The cat sat").run()
    assert app.selectbox(key="view.query").value == 3
    app.selectbox(key="view.query").set_value(2).run()
    assert link(app)["query"] == "2"
    app.text_input(key="view.text").set_value(TEXT).run()
    assert app.selectbox(key="view.query").value == 2
    app.selectbox(key="view.query").set_value(6).run()
    assert "query" not in link(app)


def test_a_query_that_is_not_there_gives_way_to_the_usual_one(open_app: Open) -> None:
    app = open_app(QKV, model="stories", text=TEXT, site="decoder", query=99)
    assert app.selectbox(key="view.query").value == 6
    assert any("This page has no query “99” (numbers go from 0 to 7). It is left out." in box.value for box in app.info)
    app = open_app(QKV, query="x")
    assert any("“query” to “x”" in box.value and "left out" in box.value for box in app.info)


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("model", "text", "usual"),
    [
        ("zh-en", "他喜欢喝水。", "where the model is least sure"),
        ("stories", "The cat sat on the", -1),
        ("cloze", "She opened the [MASK].", "[MASK]"),
        ("cloze", "She opened the door.", "where the model is least sure"),
    ],
)
def test_what_is_predicted_first_is_what_comes_after_the_text(open_app: Open, model, text, usual):
    trace = load(model).trace(text)
    read = trace.tokens["decoder" if "decoder" in trace.tokens else "encoder"]
    if usual == "where the model is least sure":
        best = trace.logits.softmax(-1).max(-1).values
        place = min(
            (i for i, token in enumerate(read) if not (model == "cloze" and token.special)), key=best.__getitem__
        )
    else:
        place = [token.text for token in read].index(usual) if isinstance(usual, str) else usual % len(read)
    titles = {}
    for position in (None, 1):
        named = {} if position is None else {"position": position}
        app = open_app(ATTENTION, model=model, text=text, **named)
        assert not app.exception
        titles[position] = json.loads(app.get("plotly_chart")[0].proto.spec)["layout"]["title"]["text"]
    assert f"position {place}" in titles[None]
    assert "position 1" in titles[1]
