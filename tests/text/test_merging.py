"""BPE one merge at a time: the paper's example, and the library's result."""

from collections import Counter
from itertools import pairwise

import pytest

from vizformer.text.schemes import PAPER, apply, bundled_table, cut, learn, merge, pair_counts, words_of

TEXTS = (
    "我有一只猫。",
    "那个我在北京上大学时认识的朋友，现在在那个城市工作。",
    "The unbelievable tokenizers lowered it.",
)


@pytest.mark.parametrize("text", TEXTS)
def test_merge_by_merge_ends_where_the_library_does(text: str) -> None:
    steps = apply(words_of(text), *bundled_table())
    assert [symbol for word in steps[-1].words for symbol in word] == [p.entry for p in cut("bpe", text)]


@pytest.mark.parametrize("text", TEXTS)
def test_every_merge_takes_the_earliest_pair_that_is_there(text: str) -> None:
    table, counts = bundled_table()
    ranks = {pair: rank for rank, pair in enumerate(table)}
    before = words_of(text)
    for step in apply(before, table, counts):
        there = [ranks[pair] for word in before for pair in pairwise(word) if pair in ranks]
        assert step.rank == min(there)
        assert step.count == counts[step.rank] > 0
        assert step.words == tuple(merge(word, step.pair) for word in before)
        assert "".join(map("".join, step.words)) == "".join(map("".join, before))
        before = step.words


def test_the_papers_example() -> None:
    steps = learn(PAPER, 8)
    merges = ["es", "est", "est</w>", "lo", "low", "ne", "new", "newest</w>"]  # Sennrich et al. 2016, algorithm 1
    assert ["".join(step.pair) for step in steps] == merges
    assert [step.counts[0][1] for step in steps] == [9, 9, 9, 7, 7, 6, 6, 6]


def test_learning_merges_the_most_frequent_pair_and_stops_where_none_repeats() -> None:
    words = Counter(words_of("他说他说过他说的话。"))
    now, steps = list(words.items()), learn(words, 40)
    assert steps
    for step in steps:
        counts = pair_counts(now)
        assert counts[step.pair] == max(counts.values()) >= 2
        now = list(step.words)
    assert max(pair_counts(now).values()) < 2
    assert learn(Counter(words_of("我有一只猫。")), 40) == ()


def test_a_merge_goes_from_left_to_right() -> None:
    assert merge(("a", "a", "a"), ("a", "a")) == ("aa", "a")
    assert merge(("a",), ("a", "a")) == ("a",)


def test_words_keep_the_space_before_them_and_end_at_punctuation() -> None:
    assert ["".join(word) for word in words_of("a cat, 猫。")] == ["a", "▁cat", ",", "▁猫", "。"]
