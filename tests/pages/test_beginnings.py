"""A reader of English and one of Chinese, from page to page: the model and the sentence that they find there."""

import pytest

from tests.pages.test_source_language import one_way
from vizformer.web.link.beginnings import CHINESE, CONTINUED, ENGLISH

__all__ = ["one_way"]  # the fixture

BLANKS, CROSS, MASKS = "pages/explore/blanks.py", "pages/learn/cross.py", "pages/learn/masks.py"


def shown(app):
    view = app.session_state["vizformer.view"].view
    return view.model.name, view.text


def arrived(open_app, page, locale):
    return open_app(page, locale=locale, utm="none of ours")  # a link that says nothing


def test_a_page_that_needs_another_model_has_a_sentence_that_it_reads(open_app):
    app = arrived(open_app, MASKS, "en-US")
    assert shown(app) == ("zh-en", ENGLISH.text)
    app.switch_page(CROSS).run()
    assert shown(app) == ("zh-en", ENGLISH.text)
    assert not [button.label for button in app.button if "Use the" in button.label]
    app.switch_page(BLANKS).run()
    assert shown(app) == ("cloze", CONTINUED.text)
    app.switch_page(MASKS).run()
    assert shown(app) == ("zh-en", ENGLISH.text)


def test_the_chinese_sentence_is_glossed_for_those_who_do_not_read_it(open_app):
    meant = "我有一只猫。 means: I have a cat."
    assert meant in [caption.value for caption in open_app(CROSS).caption]
    assert meant not in [caption.value for caption in open_app(CROSS, text="你好。").caption]
    assert not any("猫" in caption.value for caption in open_app(CROSS, locale="zh-CN").caption)


def test_a_reader_of_chinese_begins_with_the_translator(open_app):
    app = arrived(open_app, CROSS, "zh-CN")
    assert shown(app) == ("zh-en", CHINESE.text)
    assert not app.query_params.get("model")


def test_the_readers_own_sentence_and_model_stay(open_app):
    app = arrived(open_app, CROSS, "en-US")
    app.text_input(key="view.text").set_value("你好。").run()
    app.switch_page(MASKS).run()
    assert shown(app) == ("zh-en", "你好。")
    app.selectbox(key="view.model").set_value(CONTINUED.model).run()
    app.switch_page(BLANKS).run()
    app.switch_page(MASKS).run()
    assert shown(app) == ("stories", "你好。")


@pytest.mark.parametrize(
    ("page", "text", "label", "after"),
    [
        (MASKS, "I have a cat.", "Use the model zh-en", ("zh-en", "I have a cat.")),
        (CROSS, "кот", "Use the sentence 我有一只猫。", ("one-way", CHINESE.text)),
    ],
)
def test_one_press_leads_out_of_a_sentence_that_the_model_does_not_read(open_app, one_way, page, text, label, after):
    app = open_app(page, model=one_way, text=text)
    next(button for button in app.button if button.label == label).click().run()
    assert shown(app) == after
    assert not [button for button in app.button if button.key == "language.use"]
