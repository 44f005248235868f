"""Several ways of choosing on one prompt, and what the KV cache saves."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from tests import tiny
from tests.bundled import load
from vizformer.analysis.costs.generation_cost import generation_costs
from vizformer.analysis.decoding.read_back import all_read_back, back_probabilities, goes_both_ways
from vizformer.analysis.decoding.ways import beams, cache_difference, first_token, growth, written
from vizformer.errors import TraceError
from vizformer.generation import Sampling, length_penalty

TEXTS = {"zh-en": "今天天气", "stories": "Once upon a time"}


@pytest.mark.parametrize("name", TEXTS)
def test_the_probability_of_a_text_is_that_of_one_forward_over_it(name: str) -> None:
    checkpoint = load(name)
    found = written(checkpoint, TEXTS[name], 24, Sampling(temperature=0.8, seed=3))
    source, beginning = checkpoint.opening(TEXTS[name])
    start = [token.id for token in beginning]
    ids = [s.id for s in checkpoint.stream(TEXTS[name], max_new=24, sampling=Sampling(temperature=0.8, seed=3))]
    every = [*start, *ids]
    if source:
        trace = checkpoint.trace(ids=[token.id for token in source], target_ids=every[:-1])
    else:
        trace = checkpoint.trace(ids=every[:-1])
    logs = torch.log_softmax(trace.logits.double(), -1)[len(start) - 1 :]
    total = float(logs[range(len(ids)), ids].sum())
    assert found.length == len(ids)
    assert found.log_probability == pytest.approx(total, abs=1e-3)  # of float32 probabilities of about 20 steps
    assert found.score(0.6) == pytest.approx(found.log_probability / length_penalty(len(ids), 0.6))


def test_beam_search_finds_a_more_probable_text_that_is_worse_both_ways() -> None:
    checkpoint, text = load("zh-en"), "这家店的面包比那家的便宜。"  # what the lesson says of its example
    greedy = written(checkpoint, text, 12)
    assert "bread" in greedy.text
    for width in (2, 4):
        best = beams(checkpoint, text, 12, width, 0.6)[0]
        assert "bread" not in best.text
        assert best.log_probability > greedy.log_probability + 1
        assert best.ended
        backs = back_probabilities(checkpoint, text, [greedy.text, best.text])
        both = [one.log_probability + back for one, back in zip((greedy, best), backs, strict=True)]
        assert both[0] > both[1] + 1


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.sample(1)
def test_the_same_text_has_one_probability_and_one_score_however_it_was_found(name: str) -> None:
    checkpoint = load(name)
    cold = written(checkpoint, TEXTS[name], 12, Sampling(temperature=0.002, seed=1))  # the likeliest
    greedy = written(checkpoint, TEXTS[name], 12)
    ways = [*beams(checkpoint, TEXTS[name], 12, 1, 0.6), *beams(checkpoint, TEXTS[name], 12, 4, 0.6), cold]
    same = [way for way in ways if (way.text, way.length) == (greedy.text, greedy.length)]
    assert len(same) >= 2
    assert {(way.log_probability, way.score(0.6)) for way in same} == {(greedy.log_probability, greedy.score(0.6))}


def test_temperature_raises_probabilities_to_a_power() -> None:
    checkpoint = load("stories")
    p = torch.softmax(checkpoint.trace(TEXTS["stories"]).logits[-1].double(), -1)
    for temperature in (0.5, 2.0):
        warmed = p ** (1 / temperature)
        warmed /= warmed.sum()
        assert len(first_token(checkpoint, TEXTS["stories"], temperature, count=7)) == 7
        for token, own, then in first_token(checkpoint, TEXTS["stories"], temperature):
            assert own == pytest.approx(float(p[token.id]), abs=1e-6)
            assert then == pytest.approx(float(warmed[token.id]), abs=1e-6)


@pytest.mark.parametrize("name", TEXTS)
def test_with_the_cache_and_without_are_the_same_numbers(name: str) -> None:
    difference, steps = cache_difference(load(name), TEXTS[name], 8)
    assert steps > 3
    assert 0 < difference < 1e-4  # float32 rounding, in another order


def test_growth_sums_every_step() -> None:
    config = load("stories").model.config
    without, kept = growth(config, 50)
    for side, cached in ((without, False), (kept, True)):
        for row, n in zip(side, (50, 100), strict=True):
            costs = generation_costs(config, 1, n, cached=cached)
            assert row.tolist() == [
                sum(cost.attention for cost in costs),
                sum(cost.projections for cost in costs),
                sum(cost.feedforward for cost in costs),
                sum(cost.unembedding for cost in costs),
            ]
    np.testing.assert_allclose(without[1] / without[0], [8, 4, 4, 2], rtol=0.04)  # n^3, n^2, n^2, n
    np.testing.assert_allclose(kept[1] / kept[0], [4, 2, 2, 2], rtol=0.04)


READ_BACK = {
    "这家店的面包比那家的便宜。": ("bread",),
    "我们全家一起吃晚饭。": ("whole family",),
}  # and what greedy may leave out


@pytest.mark.parametrize("text", READ_BACK)
def test_a_sentence_is_read_back_best_from_a_translation_that_leaves_nothing_out(text: str) -> None:
    checkpoint = load("zh-en")
    judged = all_read_back(checkpoint, text, checkpoint.beam(text, width=6, max_new=24))
    assert [one.score for one in judged] == sorted((one.score for one in judged), reverse=True)
    assert any(word in judged[0].text for word in READ_BACK[text])


@pytest.mark.parametrize(
    ("text", "translation"), [("我爱北京。", "I love Beijing."), ("I love Beijing.", "我爱北京。")]
)
def test_the_way_back_is_the_probability_of_the_sentence_and_its_end(text: str, translation: str) -> None:
    checkpoint = load("zh-en")
    trace = checkpoint.trace(translation, target=text)
    wanted = [*(token.id for token in trace.tokens["decoder"][1:]), checkpoint.model.config.eos_id]
    log_p = torch.log_softmax(trace.logits.double(), -1)
    total = sum(float(log_p[row, id]) for row, id in enumerate(wanted))
    longer = translation * 2  # fills the batch up: it must not be heard
    backs = back_probabilities(checkpoint, text, [" ", translation, longer, "very " * 600])
    assert backs == [-math.inf, pytest.approx(total, abs=1e-4), backs[2], -math.inf]
    assert back_probabilities(checkpoint, text, [longer]) == pytest.approx([backs[2]], abs=1e-4)
    assert back_probabilities(checkpoint, text, [" "]) == [-math.inf]


def test_who_translates_one_way_reads_nothing_back() -> None:
    stories = load("stories")
    assert goes_both_ways(load("zh-en"))
    assert not goes_both_ways(stories)
    with pytest.raises(TraceError, match="one way only"):
        back_probabilities(stories, "Once", ["upon"])


@pytest.mark.parametrize(
    ("architecture", "changes"), [("decoder-only", {}), ("encoder-only", {}), ("encoder-decoder", {"eos_id": None})]
)
def test_first_tokens_alone_make_no_translator(architecture: str, changes: dict[str, Any]) -> None:
    """Without an encoder and a decoder nothing is read back, and without an end mark no text ends."""
    plain = tiny.checkpoint(architecture, **changes)
    first, second = (token.piece for token in plain.tokenizer.tokens([4, 5]))
    marked = replace(plain, tokenizer=plain.tokenizer.with_first_tokens({"CJK": first, "LATIN": second}))
    assert not goes_both_ways(marked)
    with pytest.raises(TraceError, match="one way only"):
        back_probabilities(marked, "the cats", ["the dogs"])
