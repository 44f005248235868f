"""Fill in the blank: what is on the screen is what the library computes."""

import json

import numpy as np
import pytest

from tests.bundled import load
from tests.pages.conftest import Open
from vizformer.analysis import guess, guesses, hide, next_tokens
from vizformer.web.link.model_ref import ModelRef

PAGE = "pages/explore/blanks.py"
SENTENCE = "The cat sat on the chair."


def texts(app: object) -> list[str]:
    return [element.value for element in app.text]  # type: ignore[attr-defined]


def test_the_filling_and_the_rank_are_the_models(open_app: Open) -> None:
    app = open_app(PAGE, model="cloze", text=SENTENCE, hidden="6")
    assert not app.exception
    model = load("cloze")
    tokens = model.encode(SENTENCE)
    trace = hide(model, tokens, [6])
    best = next_tokens(model, trace, 6)[0].token
    found = guess(trace, 6, tokens[6].id)
    shown = " ".join(texts(app))
    ids = [token.id if i != 6 else best.id for i, token in enumerate(tokens)]
    assert model.tokenizer.decode(ids) in shown
    assert f"“{tokens[6].text}”" in shown
    looking = json.loads(app.get("plotly_chart")[1].proto.spec)
    assert looking["layout"]["yaxis"]["title"]["text"] == "Layer"  # rows are layers, not queries
    assert "the gap attends to key" in looking["data"][0]["hovertemplate"]
    assert (f"rank {found.rank + 1} " in shown) or found.rank == 0


def test_two_languages_and_two_hidden_words(open_app: Open) -> None:
    app = open_app(PAGE, locale="zh-CN", model="cloze", text="我有一只猫。", hidden="2,5", lang="zh")
    assert not app.exception
    assert any("遮住的词" in text for text in texts(app))


def test_nothing_hidden_offers_examples(open_app: Open) -> None:
    app = open_app(PAGE, model="cloze", text="我有一只猫。")
    app.button(key="blanks.none").click().run()
    assert not app.get("plotly_chart")
    assert app.query_params["hidden"] in ("", [""])
    example = next(button for button in app.button if button.label == SENTENCE)
    app = example.click().run()
    assert not app.exception
    assert app.query_params["text"] in (SENTENCE, [SENTENCE])


@pytest.mark.parametrize("text", [SENTENCE, "我有一只猫。"])
def test_it_opens_with_the_word_hidden_that_is_found_most_surely(open_app: Open, text: str) -> None:
    app = open_app(PAGE, model="cloze", text=text)
    checkpoint = load("cloze")
    tokens = checkpoint.encode(text)
    found = guesses(checkpoint, tokens)
    words = [i for i, token in enumerate(tokens) if any(map(str.isalnum, token.text)) and not np.isnan(found[i])]
    surest = max(words, key=lambda i: found[i])
    assert f"“{tokens[surest].text}”" in " ".join(texts(app))
    assert len(app.get("plotly_chart")) == 2
    assert "hidden" not in app.query_params


OPENINGS = [
    ("en-US", "", "door", True),  # what the page opens on
    ("zh-CN", "", "只", False),
    ("en-US", "The animal didn't cross the street because it was too tired.", "cross", True),
    ("en-US", "I don’t know Tom's grandmother.", "know", True),  # “’t” and “Tom” are found more surely
    ("en-US", "He lives in Liverpool.", "lives", True),
    ("en-US", "The dog was tired, so it went to", "was", False),  # the longer words are not found
    ("zh-CN", "小明把苹果放在桌上，然后吃掉了它。", "果", False),
]


@pytest.mark.parametrize(("locale", "text", "word", "longer"), OPENINGS)
def test_it_opens_on_a_whole_word_that_is_found(
    open_app: Open, locale: str, text: str, word: str, longer: bool
) -> None:
    app = open_app(PAGE, locale=locale, **({"text": text, "model": "cloze"} if text else {"utm": "none of ours"}))
    assert not app.exception
    assert f"“{word}”" in " ".join(texts(app))
    said = {"en-US": ("the word that", "the longer word"), "zh-CN": ("遮住的是模型最有把握", "较长的词")}[locale][
        longer
    ]
    assert any(said in caption.value for caption in app.caption)
    if not text:
        tokens = load("cloze").encode(app.text_input(key="view.text").value)
        at = next(i for i, token in enumerate(tokens) if token.text == word)
        assert guesses(load("cloze"), tokens)[at] > 0.5


def test_the_mask_can_be_typed(open_app: Open) -> None:
    app = open_app(PAGE, model="cloze", text="The cat [MASK] on the chair.")
    assert not app.exception
    assert len(app.get("plotly_chart")) == 2
    assert not any("number" in text for text in texts(app))  # nobody knows what was meant


def test_a_link_without_a_model_opens_on_one_that_fills_blanks(open_app: Open) -> None:
    app = open_app(PAGE)
    assert app.query_params["model"] in ("cloze", ["cloze"])
    assert not app.info
    app.selectbox(key="view.model").select(ModelRef.parse("zh-en")).run()  # wanted: it stays, and is told about
    assert app.query_params["model"] in ("zh-en", ["zh-en"])
    assert "trained with [MASK]" in app.info[-1].value


def test_the_model_that_stands_in_on_this_page_goes_with_it(open_app: Open) -> None:
    app = open_app(PAGE)
    app.switch_page("pages/learn/qkv.py").run()
    assert not app.exception
    assert app.query_params["model"] in ("zh-en", ["zh-en"])


def test_a_model_without_a_mask_offers_one_with(open_app: Open) -> None:
    app = open_app(PAGE, model="stories")
    assert "trained with [MASK]" in app.info[-1].value
    use = next(button for button in app.button if "cloze" in button.label)
    app = use.click().run()
    assert not app.exception
    assert app.query_params["model"] in ("cloze", ["cloze"])


def test_positions_that_are_not_there_are_left_out(open_app: Open) -> None:
    for hidden in ("0", "99", "banana"):
        app = open_app(PAGE, model="cloze", text=SENTENCE, hidden=hidden)
        assert not app.exception
        assert len(app.get("plotly_chart")) == (2 if hidden == "banana" else 0)  # (a link that says nothing)
