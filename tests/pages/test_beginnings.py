"""A reader of English and one of Chinese, from page to page: the model and the sentence that they find there."""

import re

import pytest

from tests.checkpoints import folders
from tests.pages.test_source_language import one_way
from vizformer.assets import bundled_models
from vizformer.web.catalogue import server_folder
from vizformer.web.link.beginnings import CHINESE, CONTINUED, ENGLISH, FILLED

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
    assert shown(app) == ("cloze", FILLED.text)
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
        (CROSS, "кот", "Use the sentence “我有一只猫。”", ("one-way", CHINESE.text)),
    ],
)
def test_one_press_leads_out_of_a_sentence_that_the_model_does_not_read(open_app, one_way, page, text, label, after):
    app = open_app(page, model=one_way, text=text)
    next(button for button in app.button if button.label == label).click().run()
    assert shown(app) == after
    assert not [button for button in app.button if button.key == "language.use"]


@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
def test_every_model_of_the_list_says_in_five_words_what_it_does(open_app, tmp_path, monkeypatch, locale):
    monkeypatch.setenv(server_folder.VARIABLE, str(tmp_path))
    folders.gpt2(tmp_path / "writer")
    folders.bert(tmp_path / "filler")
    folders.bert(tmp_path / "headless", model="BertModel")
    folders.marian(tmp_path / "translator")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "config.json").write_text('{"model_type": "nobody"}')
    said = dict(
        option.split(": ") for option in open_app(locale=locale).selectbox(key="view.model").options if ":" in option
    )
    assert set(bundled_models()) | {"writer", "filler", "headless", "translator"} <= set(said)
    assert "broken" not in said
    assert len(set(said.values())) == len(said)
    assert all(len(words.split()) <= 5 for words in said.values())
    if locale == "en-US":
        assert said["headless"] == "turns tokens into vectors"
        assert said["zh-en"] == "translates Chinese and English"
    else:
        assert all(1 < len(re.findall("[一-鿿]", words)) <= 12 for words in said.values())
