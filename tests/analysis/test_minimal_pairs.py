"""Sentences that differ in one word: how they are written, and what is measured with them."""

import itertools
import re

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from tests.bundled import load
from vizformer.analysis.heads.pronouns import MOST_PAIRS, coins, minimal_pair, places, reference_shift
from vizformer.analysis.vectors.contextual import sense_gap
from vizformer.web.lessons.tokens.contexts import FRAMES, OCCASIONS
from vizformer.web.widgets.map_words import MOST, PAIRS, RARE

HE = PAIRS["he"][:6]


def test_one_text_in_brackets_and_braces_is_two_sentences() -> None:
    one, other = minimal_pair("The [cat] left the [street] as [it] was {tired/very wide}.")
    assert one.text == "The cat left the street as it was tired."
    assert other.text == "The cat left the street as it was very wide."
    assert [one.text[a:b] for a, b in one.spans] == [other.text[a:b] for a, b in other.spans] == ["cat", "street", "it"]
    one, other = minimal_pair("[男孩]看见[女孩]，[{他/她}]很高兴。")
    assert [[s.text[a:b] for a, b in s.spans] for s in (one, other)] == [["男孩", "女孩", "他"], ["男孩", "女孩", "她"]]
    for wrong in ("no choice", "{a/b} {c/d}"):
        with pytest.raises(ValueError, match="is needed"):
            minimal_pair(wrong)


def test_a_word_is_found_among_the_tokens() -> None:
    one, __ = minimal_pair("[男孩]看见[女孩]，[{他/她}]很高兴。")
    tokens = load("zh-en").trace(one.text, target="The").tokens["encoder"]
    found = ["".join(tokens[i].text for i in places(tokens, span)) for span in one.spans]
    assert found == ["男孩", "女孩", "他"]


def test_coins_fall_in_every_way_once_and_first_as_they_are() -> None:
    drawn = coins(4)
    assert (drawn[0] == 1).all()
    assert {tuple(row) for row in drawn} == set(itertools.product((1.0, -1.0), repeat=4))
    with pytest.raises(ValueError, match="at most"):
        coins(MOST_PAIRS + 1)


@pytest.mark.sweep
def test_the_shift_is_that_of_the_attention_weights() -> None:
    checkpoint = load("cloze")
    found = reference_shift(checkpoint.trace, HE)
    for pair, (one, other) in enumerate(found.sentences):
        leads = []
        for sentence in (one, other):
            trace = checkpoint.trace(sentence.text)
            record = trace[f"encoder.{found.layer}.self"]
            first, second, pronoun = (places(trace.tokens["encoder"], span) for span in sentence.spans)
            row = record.pattern(found.head)[pronoun[-1]]
            leads.append(float(row[list(first)].sum() - row[list(second)].sum()))
        expected = (leads[0] - leads[1]) / 2
        assert found.shifts[pair, found.layer, found.head] == pytest.approx(expected, abs=1e-6)
    assert found.mean == pytest.approx(found.shifts.mean(0).max())
    assert found.right == (found.shifts[:, found.layer, found.head] > 0).sum()
    draws = [(found.shifts * np.array(s)[:, None, None]).mean(0).max() for s in itertools.product((1, -1), repeat=6)]
    assert found.chance == pytest.approx(np.mean([best >= found.mean - 1e-9 for best in draws]))


def test_the_other_answers_shift_the_other_way() -> None:
    checkpoint = load("cloze")
    found = reference_shift(checkpoint.trace, HE)
    swapped = {"he/she": "she/he", "she/he": "he/she"}
    other = reference_shift(checkpoint.trace, [re.sub("he/she|she/he", lambda m: swapped[m[0]], text) for text in HE])
    np.testing.assert_allclose(other.shifts, -found.shifts, atol=1e-6)


@pytest.mark.sweep
@pytest.mark.slow
def test_what_the_lesson_says_of_the_bundled_models_holds() -> None:
    stories, cloze = load("stories"), load("cloze")
    first, he = (reference_shift(stories.trace, PAIRS[name]) for name in ("he_first", "he"))
    assert (first.right, len(first.sentences)) == (9, 12)  # "in most pairs the attention moves the right way"
    assert f"{first.chance:.1%}" == "2.5%"  # "coins seldom do as well"
    with_he, with_she = first.weights[..., 1, first.layer, first.head].T
    assert (with_she > with_he).all()  # "for she the head looks more at the second noun, in every row"
    assert he.chance > 0.4  # "it is gone"
    assert he.right < 9
    for name in ("he", "he_first", "it"):
        assert reference_shift(cloze.trace, PAIRS[name]).chance > 0.05
    for model, name in itertools.product(
        (stories, cloze, load("zh-en")), PAIRS
    ):  # "in none of our three models does the row of the pronoun look at the noun that is meant"
        found = reference_shift(model.trace, PAIRS[name])
        assert found.never_moves or found.chance > RARE or found.found < MOST * 2 * len(found.sentences)
    assert reference_shift(stories.trace, PAIRS["it"]).never_moves  # the word that decides comes after the pronoun
    assert not reference_shift(stories.trace, HE).never_moves


def test_the_senses_part_in_cloze_as_the_lesson_says() -> None:
    """The token "can" and 花 part early, 苹 hardly moves: cosines of the token in two sentences, after every layer."""
    cloze = load("cloze")

    def cosines(token: str) -> list[float]:
        (occasion,) = (one for one in OCCASIONS if one.token == token)
        traces = [cloze.trace(text) for text in (occasion.first, occasion.second)]
        at = [[one.text for one in trace.tokens["encoder"]].index(token) for trace in traces]
        names = [f"encoder.{layer}.post" for layer in range(cloze.model.config.n_encoder_layers)]
        return [
            float(F.cosine_similarity(*(t.residual(name)[i] for t, i in zip(traces, at, strict=True)), dim=0))
            for name in names
        ]

    for token in ("can", "花"):
        assert cosines(token)[1] < 0.6
        assert cosines(token)[-1] < 0.6
    assert min(cosines("苹")) > 0.95


@pytest.mark.parametrize("token", ["打", "bank"])
@pytest.mark.sample(1)
def test_the_gap_between_senses_is_that_of_the_vectors(token: str) -> None:
    checkpoint = load("cloze")
    found = sense_gap(checkpoint.trace, FRAMES[token])
    vectors = []
    for pair in found.sentences:
        for sentence in pair:
            trace = checkpoint.trace(sentence.text)
            at = places(trace.tokens["encoder"], sentence.spans[0])[0]
            vectors.append(trace.residual("encoder.3.post")[at])
    cosines = F.cosine_similarity(torch.stack(vectors)[:, None], torch.stack(vectors)[None], dim=-1).numpy()
    n = len(found.sentences)
    frame, sense = np.arange(2 * n) // 2, np.arange(2 * n) % 2

    def means(sense: np.ndarray) -> tuple[float, float]:
        apart, same = frame[:, None] != frame, sense[:, None] == sense
        return float(cosines[apart & same].mean()), float(cosines[apart & ~same].mean())

    same, different = means(sense)
    assert found.same[-1] == pytest.approx(same, abs=1e-5)
    assert found.different[-1] == pytest.approx(different, abs=1e-5)
    assert found.share[-1] == pytest.approx((same - different) / (1 - different), abs=1e-3)
    gaps = []
    for flips in itertools.product((0, 1), repeat=n):
        one, other = means((sense + np.repeat(flips, 2)) % 2)
        gaps.append(one - other)
    assert found.chance[-1] == pytest.approx(np.mean([gap >= same - different - 1e-6 for gap in gaps]))
    assert found.share[0] == pytest.approx(
        0.0, abs=1e-3
    )  # before the first layer the vector knows nothing of its sense


def test_the_sets_in_which_the_form_decides_have_both_orders() -> None:
    for name, words in (("he", ("he", "she")), ("ta_form", ("他", "她"))):
        one, other = (sum(f"{{{a}/{b}}}" in text for text in PAIRS[name]) for a, b in (words, words[::-1]))
        assert one == other == len(PAIRS[name]) / 2


@pytest.mark.sweep
def test_what_the_lesson_says_of_senses_holds() -> None:
    for model in ("cloze", "zh-en"):
        checkpoint = load(model)
        read = (lambda text: checkpoint.trace(text, target="The")) if model == "zh-en" else checkpoint.trace  # noqa: B023
        found = {token: sense_gap(read, FRAMES[token]) for token in ("打", "苹")}
        assert all(gap.chance[-1] <= 0.05 for gap in found.values())
        assert found["打"].share[-1] >= 0.1
        assert (found["苹"].share[-1] >= 0.1) == (model == "cloze")
    assert sense_gap(load("cloze").trace, FRAMES["bank"]).share[-1] < 0.1


def test_a_causal_model_cannot_tell_senses_that_are_decided_later() -> None:
    found = sense_gap(load("stories").trace, FRAMES["bank"][:3])  # the word that decides comes after "bank"
    np.testing.assert_allclose(found.same, found.different, atol=1e-6)
