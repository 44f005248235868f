"""Whether a model has learned texts like one: its measures, and what is told by the bounds of the bundled models."""

import json

import numpy as np
import pytest
import torch

from tests.bundled import load
from vizformer.analysis.one_forward.predictions import bounds_for, familiarity, nearest, read_bounds, strange
from vizformer.assets import asset
from vizformer.web.link.beginnings import CHINESE, CONTINUED, ENGLISH
from vizformer.web.pages.start import EXAMPLES
from vizformer.web.widgets.model_suggestions import MEANINGS

LECTURES = (
    "The animal didn't cross the street because it was too tired.",
    "那个我在北京上大学时认识的朋友，现在在那个城市工作。",
    "小明把苹果放在桌上，然后吃掉了它。",
)
FOREIGN = (
    "Le chat est assis sur le tapis.",
    "Ich möchte bitte eine Tasse Kaffee.",
    "Hoy hace muy buen tiempo.",
    "Oggi il tempo è molto bello.",
    "Wo you yi zhi mao.",
    "Кошка сидит на коврике.",
    "今日はとても天気がいいです。",
    "고양이가 매트 위에 앉아 있다.",
    "xkcd bnmq wrtz plkj",
    "SELECT * FROM users WHERE id = 5;",
)


def sign(model: str, text: str) -> str | None:
    checkpoint = load(model)
    known = read_bounds(json.loads(asset("models", model, "familiar.json").read_text(encoding="utf-8")))
    return strange(familiarity(checkpoint, checkpoint.trace(text), text), bounds_for(text, known))


def test_the_measures_are_the_models_own():
    checkpoint, text = load("stories"), "The dog was tired"
    trace = checkpoint.trace(text)
    found = familiarity(checkpoint, trace, text)
    ids = [token.id for token in trace.tokens["decoder"]]
    log_probs = torch.log_softmax(trace.logits.double(), -1)
    each = [float(log_probs[row, ids[row + 1]]) for row in range(len(ids) - 1)]
    assert found.log_prob == pytest.approx(np.mean(each), abs=1e-5)
    assert (found.tokens, found.unknown) == (len(ids) - 1, 0)
    assert found.pieces == pytest.approx((len(ids) - 1) / 14)


def test_the_characters_that_the_vocabulary_lacks_are_counted():
    checkpoint = load("cloze")
    found = familiarity(checkpoint, checkpoint.trace("The cat 🙂 sat."), "The cat 🙂 sat.")
    assert found.unknown == pytest.approx(1 / found.tokens)


@pytest.mark.parametrize("model", ["zh-en", "stories", "cloze"])
def test_foreign_texts_are_told_and_what_pages_propose_and_lectures_use_is_not(model):
    assert {text: sign(model, text) for text in LECTURES if sign(model, text)} == {}
    assert [text for text in FOREIGN if sign(model, text) is None] == []


def test_no_sentence_that_a_page_proposes_is_unlearned():
    proposed = [(one.model.name, one.text) for one in (CHINESE, ENGLISH, CONTINUED)]
    proposed += [(model.name, text) for __, model, text in EXAMPLES] + [("zh-en", text) for text in MEANINGS]
    assert [(model, text) for model, text in proposed if sign(model, text)] == []


@pytest.mark.parametrize("model", ["zh-en", "stories", "cloze"])
def test_the_sentences_that_are_offered_are_known_to_the_model(model):
    known = read_bounds(json.loads(asset("models", model, "familiar.json").read_text(encoding="utf-8")))
    for bounds in known.values():
        assert bounds.log_prob < bounds.typical
        assert [text for text in bounds.sentences[::10] if sign(model, text)] == []


def test_the_nearest_sentence_is_the_one_with_most_in_common():
    sentences = ("He lives in Boston.", "The cat sleeps on the mat.", "我有一只猫。")
    assert nearest("Le chat, the cat, est sur le mat.", sentences) == sentences[1]
    assert nearest("你有猫吗", sentences) == sentences[2]


def test_of_a_given_target_and_of_two_words_nothing_is_said_by_their_probability():
    checkpoint = load("stories")
    known = read_bounds(json.loads(asset("models", "stories", "familiar.json").read_text(encoding="utf-8")))
    text = "mat the on sat cat The ."
    found = familiarity(checkpoint, checkpoint.trace(text), text)
    assert strange(found, bounds_for(text, known)) == "log_prob"
    assert strange(found, bounds_for(text, known), written=False) is None
    short = familiarity(checkpoint, checkpoint.trace("mat the"), "mat the")
    assert strange(short, bounds_for("mat the", known)) is None
