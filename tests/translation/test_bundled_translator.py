"""The bundled translator on everyday sentences that it never saw, each way, and what its card says of it."""

import json
from collections.abc import Mapping
from functools import cache

import pytest

from recipes.bundled_models.zh_en_measures import READ_BACK
from recipes.translate import translate_all, translate_and_read_back
from recipes.translator.measure import MAX_NEW
from tests.bundled import load
from tests.translation.everyday import Direction, held, sentences, share_held
from vizformer.assets import asset

EVERY = 10  # sentences of the list are tried in a quick run


@cache
def figures() -> Mapping[str, float]:
    found: Mapping[str, float] = json.loads(asset("models", "zh-en", "evaluation.json").read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize("direction", ["zh-en", "en-zh"])
def test_a_sample_of_everyday_sentences_keeps_its_words(direction: Direction) -> None:
    sample = sentences(direction)[::EVERY]
    translations = translate_all(load("zh-en"), [one.text for one in sample], max_new=MAX_NEW)
    right = [held(text, one.required) for text, one in zip(translations, sample, strict=True)]
    assert sum(right) / len(right) >= figures()[f"{direction} everyday"] / 100 - 0.15  # 30 of 300: two standard errors


@pytest.mark.sweep
@pytest.mark.parametrize("direction", ["zh-en", "en-zh"])
def test_everyday_sentences_keep_their_words_as_the_card_says(direction: Direction) -> None:
    translations = translate_all(load("zh-en"), [one.text for one in sentences(direction)], max_new=MAX_NEW)
    # another processor adds in another order, which turns a choice between two words now and then
    assert 100 * share_held(translations, direction) == pytest.approx(figures()[f"{direction} everyday"], abs=1)


@pytest.mark.sweep
@pytest.mark.parametrize("direction", ["zh-en", "en-zh"])
def test_everyday_sentences_read_back_keep_their_words_as_the_card_says(direction: Direction) -> None:
    sample = sentences(direction)[::4]
    translations = [
        translate_and_read_back(load("zh-en"), one.text, width=READ_BACK, max_new=MAX_NEW) for one in sample
    ]
    right = [held(text, one.required) for text, one in zip(translations, sample, strict=True)]
    assert (
        sum(right) / len(right) >= figures()[f"{direction} read back everyday"] / 100 - 0.08
    )  # 75 of 300: two standard errors


@pytest.mark.parametrize(
    ("text", "first", "words"),
    [("我有一只猫。", "<2en>", "I have a cat."), ("I have a cat.", "<2zh>", "我有一只猫。")],
)
def test_the_script_of_a_text_says_which_way(text: str, first: str, words: str) -> None:
    checkpoint = load("zh-en")
    assert checkpoint.encode(text)[0].piece == first
    assert translate_all(checkpoint, [text]) == [words]
