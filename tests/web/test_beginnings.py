"""What a reader begins with, by the language of the browser, and what links go on to mean."""

import pytest
from streamlit.testing.v1 import AppTest

from vizformer.web.link.beginnings import CHINESE, CONTINUED, ENGLISH, TEXTS, of
from vizformer.web.link.view import View
from vizformer.web.widgets.model_suggestions import reads_both, written_in


def script() -> None:
    import streamlit as st

    from vizformer.web.link import state

    state.pull(st.session_state.get("page", "masks"))
    state.push()


def app(locale: str | None, **link: object) -> AppTest:
    test = AppTest.from_function(script, default_timeout=20)
    if locale is not None:
        test.context["locale"] = locale
    for name, value in link.items():
        test.query_params[name] = str(value)
    test.run()
    assert not test.exception
    return test


def begun(test: AppTest) -> tuple[object, str]:
    view = test.session_state["vizformer.view"].view
    return view.model, view.text


@pytest.mark.parametrize(
    ("locale", "beginning"),
    [
        ("en-US", ENGLISH),
        ("en", ENGLISH),
        ("fr-FR", ENGLISH),  # whose reader reads the app in English
        ("zh-CN", CHINESE),
        ("zh-TW", CHINESE),
        (None, CHINESE),
    ],
)
def test_a_link_that_says_nothing_begins_in_the_language_of_the_reader(locale, beginning):
    assert of(locale) == beginning
    test = app(locale)
    assert begun(test) == (beginning.model, beginning.text)
    if beginning is CHINESE:
        assert not test.query_params
    else:  # like a choice of the reader: it goes along in the link
        assert dict(test.query_params) == {"text": ENGLISH.text}
        assert begun(app("zh-CN", text=ENGLISH.text)) == begun(test)


@pytest.mark.parametrize(
    "link", [{"head": 2}, {"part": "leak"}, {"lang": "en"}, {"text": "我有一只猫。"}, {"model": "zh-en"}]
)
def test_a_link_of_before_means_what_it_meant(link):
    assert begun(app("en-US", **link)) == (CHINESE.model, CHINESE.text)


def test_the_link_of_a_view_at_its_defaults_opens_the_same_for_every_reader():
    link = app("en-US", model="zh-en").query_params
    assert dict(link) == {"model": "zh-en"}
    assert begun(app("en-US", model="zh-en")) == begun(app(None, model="zh-en"))
    assert not app("zh-CN", model="zh-en").query_params


def test_a_class_that_follows_a_link_without_parameters_sees_what_its_teacher_sees():
    def following() -> None:
        from vizformer.web.link import state

        state.pull("masks")
        state.adopt({})

    test = AppTest.from_function(following, default_timeout=20)
    test.context["locale"] = "en-US"
    test.run()
    assert begun(test) == (CHINESE.model, CHINESE.text)


def test_a_reader_of_either_language_begins_with_the_translator_of_both():
    assert [written_in(text) for text in TEXTS] == ["zh", "en", "en", "en"]
    assert View().model == CHINESE.model == ENGLISH.model != CONTINUED.model
    assert reads_both(CHINESE.model)
