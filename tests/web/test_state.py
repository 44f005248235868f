"""The view and the link: there and back, and what happens to nonsense, Back and a browser that lags behind."""

from dataclasses import fields
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st_
from streamlit.testing.v1 import AppTest

from vizformer.web.link import generation_settings, packed_text, state
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.link.packed_text import KeptTexts
from vizformer.web.link.view import (
    KINDS,
    LARGEST,
    LEVELS,
    MATERIALS,
    NUMBERS,
    ORDERS,
    OVERS,
    PICTURES,
    WITHOUTS,
    View,
    usual_query,
    written_query,
)

OTHER_SETTINGS = (generation_settings.Settings("sampling", temperature=0.5), generation_settings.Settings("beam"))


def script():
    import streamlit as st

    from vizformer.web.link import state
    from vizformer.web.link.view import KINDS

    page = st.session_state.get("page", "attention")
    state.pull(page)
    st.text_input("sentence", **state.bind("text"))
    st.number_input("head", 0, 100, **state.bind("head"))
    st.segmented_control("kind", KINDS, **state.bind("kind"))
    if limits := st.session_state.get("limits"):
        state.fit(**limits)
    state.push()


def app(**link: object) -> AppTest:
    test = AppTest.from_function(script, default_timeout=20)
    for name, value in link.items():
        test.query_params[name] = value
    return test.run()


def view(test: AppTest) -> View:
    assert not test.exception
    return test.session_state["vizformer.view"].view


def notices(test: AppTest) -> list[str]:
    return [str(message) for message in test.session_state["vizformer.view"].notices]


def link(test: AppTest) -> dict[str, str]:
    return {name: value[-1] if isinstance(value, list) else value for name, value in test.query_params.items()}


TEXTS = st_.text(max_size=packed_text.AS_IT_IS)
INDICES = st_.integers(0, LARGEST)
FIELDS = {
    "model": st_.sampled_from(["zh-en", "gpt2", "a b&c=d", "hub/a/b@c;n=1;dtype=float16"]).map(ModelRef.parse),
    **dict.fromkeys(("text", "target", "second", "third", "memory", "batch"), TEXTS),
    "kind": st_.sampled_from(KINDS),
    "picture": st_.sampled_from(PICTURES),
    "order": st_.sampled_from(ORDERS),
    "over": st_.sampled_from(OVERS),
    "without": st_.sampled_from(WITHOUTS),
    "level": st_.sampled_from(LEVELS),
    "numbers": st_.sampled_from(NUMBERS),
    "material": st_.sampled_from(MATERIALS),
    **dict.fromkeys(("layer", "head", "step", "new"), INDICES),
    **dict.fromkeys(("query", "key", "position"), st_.none() | INDICES),
    "lines": st_.sampled_from(["", "0,3,5@0.1@k4", "2", "@0.25", "@-"]),
    **dict.fromkeys(("edits", "toy"), st_.sampled_from(["", "encoder.0.self!unscaled"])),
    "hidden": st_.sampled_from(["", "3", "3,5"]),
    "sampling": st_.sampled_from(["", *map(generation_settings.write, OTHER_SETTINGS)]),
    "branch": st_.sampled_from(["", "3:17,8:254"]),
    "part": st_.sampled_from(["", "arithmetic"]),
    "settings": st_.sampled_from(["", "positions.k:3~masks.kind:window"]),
    "other": st_.sampled_from(["", "stories", "train-0123456789@200"]).map(
        lambda name: ModelRef.parse(name) if name else None
    ),
    **dict.fromkeys(("run", "beside"), st_.sampled_from(["", "train-0123456789"])),
    "slide": st_.sampled_from(["off", "words", "words2", "laboratory", "notes-wrong", "paper"]),
    "lang": st_.sampled_from(["", "en", "zh_CN"]),
}
VIEWS = st_.builds(View, **FIELDS)


def test_every_field_of_the_view_is_tried():
    assert set(FIELDS) == {f.name for f in fields(View)}


@given(VIEWS)
def test_a_link_says_the_whole_view(view):
    assert state._read(state._write(view)) == (view, [])


def test_the_default_view_needs_no_link():
    assert state._write(View()) == {}
    assert link(app()) == {}


def test_a_link_is_read_and_kept():
    test = app(text="hello", head="3", site="cross", query="2")
    assert view(test) == View(text="hello", head=3, kind="cross", query=2)
    assert link(test) == {"text": "hello", "head": "3", "site": "cross", "query": "2"}
    assert link(test.run()) == link(test)


def test_an_empty_sentence_is_not_the_default_sentence():
    test = app(text="")
    assert view(test).text == ""
    assert link(test) == {"text": ""}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("layer", "banana"),
        ("layer", "-1"),
        ("head", "1.5"),
        ("head", "٣"),
        ("query", "9" * 400),
        ("query", "1e3"),
        ("site", "middle"),
        ("lang", "tlh"),
        ("head", ""),
        ("head", "<script>"),
    ],
)
def test_nonsense_falls_back_and_is_said(name, value):
    test = app(text="hello", **{name: value})
    assert view(test) == View(text="hello")
    assert len(notices(test)) == 1
    assert value in notices(test)[0]
    assert link(test) == {"text": "hello"}


def test_unknown_parameters_are_nobodys_business():
    test = app(utm_source="x", head="2")
    assert notices(test) == []
    assert view(test) == View(head=2)


def test_what_is_outside_the_model_falls_back_and_is_said():
    test = app(layer="7", head="8", query="3")
    test.session_state["limits"] = {"layer": 6, "head": 9, "query": 4}
    test.run()
    assert view(test) == View(layer=0, head=8, query=3)
    assert notices(test) == ["This page has no layer “7” (numbers go from 0 to 5). It shows 0 instead."]
    assert link(test) == {"head": "8", "query": "3"}
    test.session_state["limits"] = {"query": 3}
    test.run()
    assert view(test).query is None
    assert notices(test)[-1] == "This page has no query “3” (numbers go from 0 to 2). It is left out."
    test.session_state["limits"] = {"model": ("tiny", "small")}
    test.run()
    assert str(view(test).model) == "tiny"


def test_a_part_that_is_not_there_is_left_out_and_the_others_are_named():
    test = app(part="steps")
    test.session_state["limits"] = {"part": ("", "lookup", "scale")}
    test.run()
    assert view(test).part == ""
    assert notices(test) == ["This page has no part “steps” (there are lookup, scale). It is left out."]


def test_widgets_write_the_link():
    test = app()
    test.text_input[0].set_value("A cat.").run()
    assert link(test) == {"text": "A cat."}
    test.number_input[0].set_value(5).run()
    assert link(test) == {"text": "A cat.", "head": "5"}
    test.text_input[0].set_value(View().text).run()
    assert link(test) == {"head": "5"}


def test_the_link_writes_the_widgets():
    test = app(text="one")
    assert test.text_input[0].value == "one"
    test.query_params["text"] = "two"
    test.run()
    assert test.text_input[0].value == "two"


def test_a_choice_that_is_switched_off_stays():
    test = app(site="cross")
    test.button_group[0].set_value(None).run()
    assert view(test).kind == "cross"
    assert test.button_group[0].value == "cross"


def test_a_long_text_is_whole_in_the_link_too():
    text = "我有一只猫。" * 300
    test = app()
    test.text_input[0].set_value(text).run()
    test.run()
    assert view(test).text == text
    assert packed_text.read(link(test)["text"]) == text
    again = app(text=link(test)["text"])
    assert view(again).text == text


def test_a_text_too_long_for_a_link_is_opened_by_it_while_the_server_keeps_it(monkeypatch):
    text = "".join(map(chr, range(0x4E00, 0x8E00)))
    test = app()
    test.text_input[0].set_value(text).run()
    test.run()
    assert view(test).text == text
    address = link(test)
    assert len(address["text"]) < packed_text.AS_IT_IS + 30
    again = app(**address)  # as after a reload
    assert view(again).text == text
    assert link(again) == address
    monkeypatch.setattr(packed_text, "KEPT", KeptTexts())
    late = app(**address)
    assert view(late).text == text[: packed_text.AS_IT_IS]
    assert "shows its beginning" in str(late.session_state["vizformer.view"].notices[0])


def test_the_view_goes_along_when_navigation_drops_the_link():
    test = app(head="3")
    test.session_state["page"] = "qkv"
    test.query_params.clear()
    test.run()
    assert view(test) == View(head=3)
    assert link(test) == {"head": "3"}


def test_a_page_opened_with_parameters_shows_them():
    test = app(head="3")
    test.session_state["page"] = "qkv"
    test.query_params.clear()
    test.query_params["head"] = "1"
    test.run()
    assert view(test) == View(head=1)


def test_an_address_that_lags_behind_changes_nothing():
    test = app(head="3")
    test.number_input[0].set_value(4).run()
    test.query_params["head"] = "3"  # the browser had not heard of head=4 when it asked to run again
    test.run()
    assert view(test).head == 4
    assert link(test) == {"head": "4"}


def suggesting():
    import streamlit as st

    from vizformer.web.link import state

    page = st.session_state.get("page", "attention")
    state.pull(page)
    if page == "attention":
        st.text("suggested" if state.suggest(layer=2, head=1) else "said")
    st.number_input("head", 0, 100, **state.bind("head"))
    st.button("keep", on_click=state.keep_suggested)
    st.button("query", on_click=lambda: state.update(query=4))
    state.push()


def test_what_a_page_suggests_is_shown_and_left_out_of_the_link_until_the_reader_takes_it():
    test = AppTest.from_function(suggesting, default_timeout=20).run()
    assert (view(test).layer, view(test).head, link(test)) == (2, 1, {})
    test.session_state["page"] = "masks"
    assert (view(test.run()).layer, view(test).head, link(test)) == (0, 0, {})  # a page that suggests nothing
    test.session_state["page"] = "attention"
    assert (view(test.run()).layer, test.text[0].value) == (2, "suggested")
    test.number_input(key="view.head").set_value(3).run()
    assert (link(test), test.text[0].value) == ({"layer": "2", "head": "3"}, "said")
    test.number_input(key="view.head").set_value(0).run()
    assert link(test) == {"layer": "2", "head": "0"}


@pytest.mark.parametrize("taken", ["keep", "query"])
def test_a_suggestion_is_taken_with_a_row_of_it_and_on_the_way_to_another_page(taken):
    test = AppTest.from_function(suggesting, default_timeout=20).run()
    next(button for button in test.button if button.label == taken).click().run()
    assert link(test) == {"layer": "2", "head": "1"} | ({"query": "4"} if taken == "query" else {})


@pytest.mark.parametrize("said", [{"layer": "0"}, {"head": "0"}, {"layer": "1"}])
def test_a_link_that_names_a_layer_or_a_head_always_wins(said):
    test = AppTest.from_function(suggesting, default_timeout=20)
    test.query_params.update(said)
    test.run()
    assert test.text[0].value == "said"
    assert (view(test).layer, view(test).head) == (int(said.get("layer", 0)), 0)
    assert link(test) == said


def test_back_shows_what_was_there_even_a_text_too_long_for_a_link(monkeypatch):
    text = "字" * 1000
    test = app()
    test.text_input[0].set_value(text).run()
    there = link(test)
    test.number_input[0].set_value(4).run()

    monkeypatch.setattr(state, "get_script_run_ctx", lambda **__: SimpleNamespace(is_history_navigation=True))
    test.query_params.clear()
    test.query_params.update(there)
    test.run()
    assert view(test) == View(text=text)
    test.query_params.clear()
    test.run()
    assert view(test) == View()
    test.query_params["head"] = "9"  # an address this session has never had, as after a restart of the server
    test.run()
    assert view(test) == View(head=9)


def test_what_a_session_remembers_is_bounded():
    test = app()
    for head in range(1, state.REMEMBERED + 20):
        test.number_input[0].set_value(head % 100)
        test.run()
    assert len(test.session_state["vizformer.view"].seen) <= state.REMEMBERED


def test_every_field_can_be_written_read_and_named():
    for f in fields(View):
        assert {"read", "label"} <= set(f.metadata)


@pytest.mark.parametrize(
    ("said", "usual"),
    [("<s> The cat .", 2), ("<s> . </s>", 2), ("猫 。 </s>", 0), ("<s>", 0), ("[CLS] door ##s . [SEP]", 2)],
)
def test_the_usual_query_is_the_last_word(said, usual):
    tokens = [SimpleNamespace(text=text, special=text[0] in "<[") for text in said.split()]
    assert usual_query(tokens) == usual
    assert View().query_of(tokens) == usual
    assert View(query=99).query_of(tokens) == len(tokens) - 1
    assert [View(query=written_query(q, tokens)).query_of(tokens) for q in range(len(tokens))] == [*range(len(tokens))]


@pytest.mark.parametrize(("value", "kept"), [(3, 3), (None, 1), ("3 · 鸭", 1), (2.5, 1)])
def test_only_a_value_of_its_kind_is_taken_from_a_widget(monkeypatch, value, kept):
    # Where a list's options change while its browser answers, Streamlit hands out the old option's label.
    view = {"query": 1}
    monkeypatch.setattr(state.st, "session_state", {"view.query": value})
    monkeypatch.setattr(state, "view", lambda: View(**view))
    monkeypatch.setattr(state, "update", view.update)
    state._take("query", "view.query")
    assert view == {"query": kept}


def test_nothing_is_not_a_value_unless_the_field_may_be_empty():
    test = app(head="3", site="cross", query="2")

    def change():
        from vizformer.web.link import state

        state.pull("attention")
        state.update(head=None, kind=None, lang=None, text=None, query=None)

    again = AppTest.from_function(change)
    again.session_state["vizformer.view"] = test.session_state["vizformer.view"]
    again.query_params.update({"head": "3", "site": "cross", "query": "2"})
    again.run()
    assert view(again) == View(head=3, kind="cross", query=None)


def test_what_a_tab_carries_stands_in_its_address_and_is_no_part_of_the_view() -> None:
    def carrying():
        import streamlit as st

        from vizformer.web.link import state

        state.pull("attention")
        state.carry(**st.session_state.get("beside", {}))
        state.update(head=3)
        state.push()
        st.session_state["link"] = state.link()

    test = AppTest.from_function(carrying, default_timeout=20)
    test.session_state["beside"] = {"room": "ABCDEF"}
    test.run()
    assert link(test) == {"head": "3", "room": "ABCDEF"}
    assert test.session_state["link"] == {"head": "3"}
    test.session_state["beside"] = {}
    test.run()
    assert link(test) == {"head": "3"}
    assert view(test).head == 3
