"""The frame around every page: language, navigation, and what it says about a link it cannot follow."""

import pytest

from vizformer.web import frame

PAGES = [entry.file for __, entries in frame.SECTIONS for entry in entries]


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize(("locale", "title"), [("en-US", 0), ("zh-CN", 1)])
def test_every_page_opens_in_every_language_more_than_once(open_app, page, locale, title):
    app = open_app(page, locale=locale)
    for __ in range(2):
        assert not app.exception
        assert not app.error
        assert len(app.title) == 1
        app = app.run()
    language = app.sidebar.button_group(key="vizformer.language")
    assert language.value == ("en", "zh_CN")[title]


def test_the_browsers_language_is_the_first_choice(open_app):
    assert open_app().title[0].value == "Attention"
    assert open_app(locale="fr-FR").title[0].value == "Attention"
    for locale in ("zh-CN", "zh", "zh-Hans-SG"):
        assert open_app(locale=locale).title[0].value == "注意力"


def test_the_link_overrides_the_browsers_language(open_app):
    assert open_app(locale="zh-CN", lang="en").title[0].value == "Attention"
    for spelling in ("zh_CN", "zh-CN", "zh"):
        assert open_app(lang=spelling).title[0].value == "注意力"


def test_the_language_switch_keeps_the_rest_of_the_link(open_app):
    app = open_app(text="hello", head=3)
    app.sidebar.button_group(key="vizformer.language").set_value("zh_CN").run()
    assert app.title[0].value == "注意力"
    assert {name: values[-1] for name, values in app.query_params.items()} == {
        "text": "hello",
        "head": "3",
        "lang": "zh_CN",
    }
    app.sidebar.button_group(key="vizformer.language").set_value("en").run()
    assert app.title[0].value == "Attention"


def test_nonsense_in_a_link_gives_defaults_and_one_notice_each(open_app):
    app = open_app(head="banana", layer="-1", query="9" * 40, site="sideways", lang="klingon", text="hello", zzz="1")
    assert not app.exception
    assert len(app.info) == 5
    assert "head = banana" in app.info[1].value or any("banana" in info.value for info in app.info)
    assert {name: values[-1] for name, values in app.query_params.items()} == {"text": "hello"}


def test_a_notice_goes_when_the_reader_changes_something(open_app):
    app = open_app(head="banana")
    assert app.info
    app = app.run()  # nothing changed: it stays
    assert app.info
    app.sidebar.button_group(key="vizformer.language").set_value("zh_CN").run()
    assert not app.info


def test_markup_in_a_link_is_shown_as_it_stands(open_app):
    app = open_app(head="**bold** <b>x</b>")
    assert r"\*\*bold\*\*" in app.info[0].value
    assert r"\<b\>" in app.info[0].value
