"""A text that a bundled model has not learned: said on the pages beside its picture, with a sentence that works."""

import re

import pytest

PAGES = ("pages/learn/start.py", "pages/explore/attention.py", "pages/explore/generation.py", "pages/explore/blanks.py")
FRENCH = "Le chat est assis sur le tapis."
SAID = "This model has not learned texts like this"


def said(app) -> list[str]:
    return [one.value for one in app.info if SAID in one.value]


@pytest.mark.parametrize(
    ("page", "model"),
    list(zip(PAGES * 2, ["zh-en", "zh-en", "stories", "cloze", "stories", "cloze"], strict=False)),
)
def test_it_is_said_and_one_press_leads_to_a_sentence_that_works(open_app, page, model):
    app = open_app(page, model=model, text=FRENCH)
    assert not app.exception
    assert len(said(app)) == 1
    assert re.search(
        r"0\.\d\d tokens a character; 99\.5% of held-out texts have at most 0\.5|log-probability", said(app)[0]
    )
    app = app.button(key="unlearned.use").click().run()
    assert not app.exception
    assert said(app) == []
    assert app.session_state["vizformer.view"].view.text != FRENCH


@pytest.mark.parametrize("text", ["I have a cat.", "我有一只猫。", "cat"])
@pytest.mark.parametrize("model", ["zh-en", "stories"])
def test_of_a_text_that_it_knows_and_of_one_word_nothing_is_said(open_app, model, text):
    assert said(open_app(PAGES[1], model=model, text=text)) == []


def test_a_text_in_another_script_is_said_once(open_app):
    app = open_app(PAGES[1], model="zh-en", text="Кошка сидит на коврике.")
    assert len(app.info) == 1
    assert said(app) == []


def test_chinese_readers_get_it_in_chinese(open_app):
    app = open_app(PAGES[1], model="stories", text=FRENCH, lang="zh_CN")
    assert [one.value for one in app.info if "没有学过这样的文本" in one.value]
