"""BLEU, count by count, against sacreBLEU and the examples of the paper (Papineni et al. 2002, section 2)."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU

from vizformer.analysis.decoding.read_back import bleu, words_of

WORDS = st.sampled_from(
    [
        "the",
        "The",
        "cat",
        "is",
        "on",
        "mat",
        "don't",
        "well-known",
        "3.5",
        "1,000",
        "1990-95",
        ".",
        ",",
        "!",
        "(",
        "$5",
        "end.",
        "...",
        "a,b",
    ]
)
CHINESE = st.sampled_from(["我", "有", "一只", "猫", "。", "，", "cat", "3.5", "（", "Transformer", ", "])


def definition(text: str, reference: str, tokenize: str):
    """sacreBLEU without smoothing, and without leaving out the runs that a short text has none of: the paper's BLEU."""
    return BLEU(smooth_method="none", tokenize=tokenize, effective_order=False).corpus_score([text], [[reference]])


@pytest.mark.parametrize(("words", "written", "tokenize"), [(WORDS, "{}", "13a"), (CHINESE, "我{}。", "zh")])
def test_every_count_is_that_of_sacrebleu(words, written, tokenize):
    joined = "" if tokenize == "zh" else " "
    texts = st.lists(words, min_size=1, max_size=12).map(lambda found: written.format(joined.join(found)))

    @given(texts, texts)
    def same(text, reference):
        found, right = bleu(text, reference), definition(text, reference, tokenize)
        assert [one.counted for one in found.runs] == right.counts
        assert [one.in_text.total() for one in found.runs] == right.totals
        assert (found.words, found.reference_words) == (right.sys_len, right.ref_len)
        assert found.brevity_penalty == pytest.approx(right.bp, abs=1e-12)
        assert 100 * found.score == pytest.approx(right.score, abs=1e-9)  # both in float64

    same()


def test_a_word_counts_no_more_often_than_the_reference_has_it():
    found = bleu("the the the the the the the", "the cat is on the mat")
    assert (found.runs[0].counted, found.runs[0].in_text.total()) == (2, 7)
    assert found.score == 0


def test_a_short_text_is_punished_and_a_long_one_by_its_precision_alone():
    assert bleu("a b c d", "a b c d e f").brevity_penalty == math.exp(1 - 6 / 4)
    assert bleu("a b c d e f", "a b c d").brevity_penalty == 1
    assert bleu("a b c d", "a b c d").score == 1
    assert bleu("", "a b c d").score == 0


def test_signs_stand_apart_and_numbers_stay_whole():
    assert words_of("It cost 3.5 (or 1,000), isn't it well-known?") == [
        *["It", "cost", "3.5", "(", "or", "1,000", ")", ","],
        "isn't",
        "it",
        "well-known",
        "?",
    ]
    assert words_of("我有3只猫。") == ["我", "有", "3", "只", "猫", "。"]
