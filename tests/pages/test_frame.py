"""The frame around every page: language, navigation, and what it says about a link it cannot follow."""

import pytest

from vizformer.web.frame import first_files, sitemap
from vizformer.web.link.languages import LANGUAGES
from vizformer.web.widgets import model_input

PAGES = [entry.file for entry in sitemap.PAGES.values()]


SWITCH = "vizformer.language"


def link(app) -> dict[str, str]:
    return {name: value[-1] if isinstance(value, list) else value for name, value in app.query_params.items()}


def notices(app) -> list[str]:
    return [info.value for info in app.info if "The link sets" in info.value]


@pytest.mark.sample(2)
@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
def test_every_page_opens_in_every_language_more_than_once(open_app, page, locale):
    app = open_app(page, locale=locale)
    for __ in range(2):
        assert not app.exception
        assert len(app.title) == 1
        assert app.button(key=SWITCH).label == LANGUAGES["en" if locale == "zh-CN" else "zh_CN"]
        app = app.run()


def test_a_run_sends_nothing_that_stands_in_the_page_already(open_app):
    text, __ = first_files.index("en", sitemap.HOME, has_picture=False, packed=False)
    sent = [element.proto.body for element in open_app("pages/learn/path.py").get("html")]
    assert sent
    assert not [body for body in sent if body.encode() in text]


@pytest.mark.parametrize("door", sitemap.DOORS, ids=lambda door: door.url)
def test_a_door_asks_for_sentence_and_model_and_leads_on_with_them(open_app, door):
    app = open_app(door.file, model="zh-en", text="他喜欢喝水。")
    assert app.text_input(key="view.text").value == "他喜欢喝水。"
    app.text_input(key="view.text").set_value("我有一本书。").run()
    app.switch_page(sitemap.ATTENTION.file).run()
    assert app.text_input(key="view.text").value == "我有一本书。"
    assert app.selectbox(key="view.model").value.name == "zh-en"


def test_the_browsers_language_is_the_first_choice(open_app):
    assert open_app().title[0].value.startswith("A Transformer translating")
    assert open_app(locale="fr-FR").title[0].value.startswith("A Transformer translating")
    for locale in ("zh-CN", "zh", "zh-Hans-SG"):
        assert open_app(locale=locale).title[0].value.startswith("一个正在翻译")


def test_the_link_overrides_the_browsers_language(open_app):
    assert open_app(locale="zh-CN", lang="en").title[0].value.startswith("A Transformer translating")
    for spelling in ("zh_CN", "zh-CN", "zh"):
        assert open_app(lang=spelling).title[0].value.startswith("一个正在翻译")


@pytest.mark.parametrize(
    ("locale", "text", "label"),
    [
        ("en-US", " ", "Menu · type a sentence"),
        ("zh-CN", " ", "菜单 · 输入句子"),
        ("en-US", "我有一只猫。", "Menu · 我有一只猫。"),
        ("en-US", "a" * 30, f"Menu · {'a' * 24}…"),
        ("zh-CN", "猫" * 30, f"菜单 · {'猫' * 12}…"),
    ],
)
def test_the_folded_bar_of_a_phone_names_the_sentence_if_there_is_one(open_app, locale, text, label):
    app = open_app("pages/explore/attention.py", locale=locale, text=text, model="zh-en")
    assert app.checkbox(key="bar.open").label.replace("\\", "").replace("\u2060", "") == label


@pytest.mark.parametrize(("characters", "ours"), [(20_000, True), (20_001, False), (2**20, False)])
def test_a_text_file_comes_whole_or_its_length_is_said(open_app, monkeypatch, characters, ours):
    monkeypatch.setattr(model_input, "button", model_input._content)  # the box is open all the time
    app = open_app("pages/explore/attention.py", model="stories")
    app.file_uploader(key="long_text.file").set_value(("a.txt", b"a" * characters, "text/plain")).run()
    assert not app.exception
    assert len(app.text_area(key="long_text.box").value) == characters
    said = f"{characters:,} characters; at most 20,000"
    assert any(said in error.value.replace("\u2060", "") for error in app.error) is not ours


def test_the_language_switch_keeps_the_rest_of_the_link(open_app):
    app = open_app(text="hello", head=3)
    app.button(key=SWITCH).click().run()
    assert app.title[0].value == "注意力"
    assert link(app) == {"text": "hello", "head": "3", "lang": "zh_CN"}
    app.button(key=SWITCH).click().run()
    assert app.title[0].value == "Attention"


def test_nonsense_in_a_link_gives_defaults_and_one_notice_each(open_app):
    app = open_app(head="banana", layer="-1", query="9" * 40, site="sideways", lang="klingon", text="hello", zzz="1")
    assert not app.exception
    assert len(notices(app)) == 5
    assert any("“head” to “banana”" in notice for notice in notices(app))
    assert link(app) == {"text": "hello"}


def test_a_notice_goes_when_the_reader_changes_something(open_app):
    app = open_app(head="banana")
    assert notices(app)
    assert notices(app.run())  # nothing changed: it stays
    app.button(key=SWITCH).click().run()
    assert not app.info


def test_markup_in_a_link_is_shown_as_it_stands(open_app):
    app = open_app(head="**bold** <b>x</b>")
    assert r"\*\*bold\*\*" in notices(app)[0]
    assert r"\<b\>" in notices(app)[0]
