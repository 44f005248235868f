"""Which source token a row looks at most, links by hand, and word order."""

import numpy as np

from tests.bundled import load
from vizformer.analysis import (
    alignment,
    alignment_score,
    head_maps,
    linked,
    read_alignments,
    telling_row,
    word_order,
)
from vizformer.assets import asset


def pairs():
    return read_alignments(asset("models", "zh-en", "alignment.tsv"))


def test_the_marks_of_the_source_are_left_out_of_the_choice():
    trace = load("zh-en").trace("我有一只猫。")
    found, weights = alignment(trace), head_maps(trace, "cross").weights
    marks = [token.special for token in trace.tokens["encoder"]]
    assert np.take(marks, weights.argmax(-1)).any()
    np.testing.assert_array_equal(found.by_head, np.where(marks, -1, weights).argmax(-1))
    np.testing.assert_array_equal(found.mean, np.where(marks, -1, weights.mean(1)).argmax(-1))
    np.testing.assert_allclose(found.weights, weights.mean(1))


def test_a_link_is_the_row_that_chooses_the_word_and_the_tokens_of_its_characters():
    pair = next(pair for pair in pairs() if pair.target == "He left ten minutes ago.")
    trace = load("zh-en").trace(pair.source, target=pair.target)
    source, target = trace.tokens["encoder"], trace.tokens["decoder"]
    found = {link.word: link for link in linked(pair, source, target)}
    assert list(found) == ["left", "ten", "minutes", "ago"]
    assert target[found["left"].row + 1].text == "left"
    assert [source[k].text for k in found["left"].columns] == ["离", "开"]
    assert [source[k].text for k in found["ten"].columns] == ["十"]


def test_heads_are_scored_each_and_the_mean_as_on_the_card():
    checkpoint, some = load("zh-en"), pairs()[:6]
    score = alignment_score(checkpoint, some)
    hits, means = [], []
    for pair in some:
        trace = checkpoint.trace(pair.source, target=pair.target)
        found = alignment(trace)
        for link in linked(pair, trace.tokens["encoder"], trace.tokens["decoder"]):
            hits.append([[k in link.columns for k in heads] for heads in found.by_head[..., link.row]])
            means.append([k in link.columns for k in found.mean[:, link.row]])
    np.testing.assert_allclose(score.by_head, np.mean(hits, axis=0))
    np.testing.assert_allclose(score.found, np.mean(means, axis=0))
    assert score.words == len(hits)


def test_word_order_counts_crossings():
    assert word_order([0, 1, 2], range(3)).crossed == ()
    turned = word_order([2, 1, 0, 1], range(4))
    assert turned.crossed == ((0, 1), (0, 2), (0, 3), (1, 2))
    assert turned.pairs == 5  # rows 1 and 3 look at the same token
    assert word_order([2, 1, 0, 1], [1, 3]).pairs == 0


def test_the_telling_row_leads_most():
    weights = np.array([[0.5, 0.4, 0.1], [0.9, 0.05, 0.05], [0.99, 0.01, 0.0]])
    assert telling_row(weights, [0, 1]) == 1
    assert telling_row(weights, []) is None
    assert telling_row(weights[:, :1], [0]) is None


def test_words_change_places_between_chinese_and_english():
    trace = load("zh-en").trace("他十分钟前离开了。", target="He left ten minutes ago.")
    found, target = alignment(trace), trace.tokens["decoder"]
    rows = range(len(target) - 1)
    crossed = word_order(found.mean[2].tolist(), rows).crossed
    words = {(target[i + 1].text, target[j + 1].text) for i, j in crossed}
    assert words == {("left", "ten"), ("left", "minutes"), ("left", "ago")}
