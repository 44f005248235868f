"""The questions that a sentence answers: asked where the answer is clear, and right."""

from dataclasses import replace

import numpy as np
import pytest

import vizformer as vf
from tests import tiny
from vizformer.analysis import (
    HeadMaps,
    head_maps,
    kinds,
    ratio_question,
    scale_question,
    score_scale,
    site_name,
    where_question,
)
from vizformer.analysis.heads import questions
from vizformer.analysis.heads.measures import find_rest
from vizformer.analysis.heads.questions import MOST_CHOICES

KINDS = [("encoder-decoder", {}), ("decoder-only", tiny.LLAMA), ("encoder-only", tiny.BERT)]


def traced(architecture: str, options: dict[str, object]):
    checkpoint = tiny.checkpoint(architecture, **options)
    return checkpoint.trace("我有一只猫和两只狗。", target="a cat" if architecture == "encoder-decoder" else None)


@pytest.mark.parametrize(("architecture", "options"), KINDS)
def test_the_answer_is_the_key_with_the_largest_weight_and_is_among_the_choices(architecture, options):
    trace = traced(architecture, options)
    for kind in kinds(trace):
        asked, maps = where_question(trace, kind), head_maps(trace, kind)
        assert asked is not None
        weights = maps.weights[asked.layer, asked.head, asked.query]
        assert asked.weights == tuple(weights.tolist())
        assert asked.best == weights.argmax()
        assert asked.best in asked.keys
        assert list(asked.keys) == sorted(set(asked.keys))
        assert 2 <= len(asked.keys) <= MOST_CHOICES
        assert (maps.reasons[asked.layer, asked.query, list(asked.keys)] == 0).all()


def test_no_other_word_of_the_text_has_a_clearer_answer():
    trace = traced("decoder-only", tiny.LLAMA)
    asked, maps = where_question(trace, "decoder"), head_maps(trace, "decoder")
    assert asked is not None
    best = maps.weights.argmax(-1)  # [n_layers, n_heads, n]
    lead = np.diff(np.sort(maps.weights, -1)[..., -2:])[..., 0]
    elsewhere = best != np.arange(best.shape[-1])
    words = np.array([not token.special for token in trace.tokens["decoder"]])
    words[:2] = False  # these two see no more than two keys
    assert all(find_rest(w, maps.reasons[0]) is None for heads in maps.weights for w in heads)
    here = (asked.layer, asked.head, asked.query)
    assert words[asked.query]
    if elsewhere[here]:
        assert lead[here] == lead[elsewhere & words].max()
    else:
        assert lead[here] - 0.5 >= lead[elsewhere & words].max()


def test_a_head_that_rests_on_one_key_is_asked_for_only_where_all_rest():
    trace = vf.load("zh-en").trace("我有一只猫。")
    asked, maps = where_question(trace, "encoder"), head_maps(trace, "encoder")
    assert asked is not None
    assert find_rest(maps.weights[0, 0], maps.reasons[0]) is not None  # whose rows have the clearest answers of all
    assert find_rest(maps.weights[asked.layer, asked.head], maps.reasons[asked.layer]) is None


@pytest.mark.parametrize(("architecture", "options"), KINDS)
def test_the_division_is_asked_of_the_query_that_gains_most_without_it(architecture, options):
    trace = traced(architecture, options)
    for kind in kinds(trace):
        asked, maps = scale_question(trace, kind), head_maps(trace, kind)
        assert asked is not None
        scale = score_scale(trace, site_name(kind, asked.layer), asked.head)
        assert (asked.divided, asked.undivided, asked.divisor) == (
            scale.largest[asked.query],
            scale.largest_undivided[asked.query],
            scale.divisor,
        )
        assert asked.key == maps.weights[asked.layer, asked.head, asked.query].argmax()
        assert asked.even == pytest.approx(1 / (maps.reasons[asked.layer, asked.query] == 0).sum())
        stack = trace.tokens["encoder" if kind == "encoder" else "decoder"]
        assert not stack[asked.query].special
        gains = [
            (found.largest_undivided - found.largest)[asked.query]
            for layer in range(len(maps.weights))
            for head in range(maps.weights.shape[1])
            for found in [score_scale(trace, site_name(kind, layer), head)]
        ]
        assert asked.undivided - asked.divided == pytest.approx(max(gains))


def test_a_mark_is_asked_only_where_there_is_no_word(monkeypatch):
    """Row 0 has the clearest answer and is a mark; row 1 looks at itself; row 2 is a word with an answer."""
    weights = np.array([[[[0.0, 1.0, 0.0], [0.1, 0.8, 0.1], [0.3, 0.6, 0.1]]]])
    maps = HeadMaps(weights, weights, np.zeros((1, 3, 3), np.uint8))
    monkeypatch.setattr(questions, "head_maps", lambda trace, kind: maps)
    for special, query in (((True, False, False), 2), ((True, True, True), 0)):
        trace = tiny.checkpoint("encoder-only").trace(ids=[5, 6, 7])
        tokens = zip(trace.tokens["encoder"], special, strict=True)
        trace.tokens["encoder"] = tuple(replace(token, special=mark) for token, mark in tokens)
        asked = where_question(trace, "encoder")
        assert (asked.query, asked.best) == (query, 1)


def test_nothing_is_asked_where_no_query_has_a_choice():
    trace = tiny.checkpoint("decoder-only").trace(ids=[5])
    assert where_question(trace, "decoder") is None
    assert scale_question(trace, "decoder") is None
    assert ratio_question(trace, "decoder") is None


@pytest.mark.parametrize(("architecture", "options"), KINDS)
def test_the_ratio_of_two_weights_follows_from_their_scores(architecture, options):
    trace = traced(architecture, options)
    for kind in kinds(trace):
        asked, maps = ratio_question(trace, kind), head_maps(trace, kind)
        assert asked is not None
        weights = maps.weights[asked.layer, asked.head, asked.query]
        assert weights[asked.first] / weights[asked.second] == pytest.approx(asked.ratio, rel=1e-4)
        assert {asked.first, asked.second} == set(np.argsort(-weights)[:2].tolist())
        assert asked.ratio == pytest.approx(np.exp(asked.scores[0] - asked.scores[1]))
        words = [not token.special for token in trace.tokens["encoder" if kind == "encoder" else "decoder"]]
        sees = (maps.reasons == 0).sum(-1)
        assert words[asked.query]
        nearest = min(
            abs(np.log(two[1] / two[0]) - np.log(3))
            for layer, head, query in np.ndindex(maps.weights.shape[:3])
            if words[query] and sees[layer, query] >= min(3, maps.weights.shape[-1])
            for two in [np.sort(maps.weights[layer, head, query])[-2:]]
        )
        assert abs(np.log(asked.ratio) - np.log(3)) == pytest.approx(nearest, abs=1e-4)
