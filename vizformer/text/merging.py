"""Byte-pair encoding one merge at a time: learning a table of merges, and applying one to a text.

Source: Sennrich, Haddow & Birch 2016, "Neural Machine Translation of Rare Words with Subword Units", section 3.2 and
algorithm 1.
"""

import itertools
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from vizformer.assets import asset
from vizformer.text.schemes import pre_tokenizer, scheme_tokenizer

Pair = tuple[str, str]
Word = tuple[str, ...]

PAPER: Mapping[Word, int] = {
    ("l", "o", "w", "</w>"): 5,
    ("l", "o", "w", "e", "r", "</w>"): 2,
    ("n", "e", "w", "e", "s", "t", "</w>"): 6,
    ("w", "i", "d", "e", "s", "t", "</w>"): 3,
}
"""The word counts of the paper's algorithm 1, each word with its end mark."""


@dataclass(frozen=True)
class Learned:
    """One step of learning: the most frequent pair, the counts of all pairs before the merge, and the words after it."""

    pair: Pair
    counts: tuple[tuple[Pair, int], ...]
    words: tuple[tuple[Word, int], ...]


@dataclass(frozen=True)
class Applied:
    pair: Pair  # of all pairs of adjacent symbols the one that was learned first
    rank: int  # its line in the table, from 0
    count: int | None  # how often the pair occurred when it was learned
    words: tuple[Word, ...]  # the words of the text after the merge


def merge(word: Sequence[str], pair: Pair) -> Word:
    """The word with each occurrence of `pair`, from left to right, as one symbol.

    >>> merge(("n", "e", "w", "e", "s", "t"), ("e", "s"))
    ('n', 'e', 'w', 'es', 't')
    """
    merged: list[str] = []
    i = 0
    while i < len(word):
        if tuple(word[i : i + 2]) == pair:
            merged.append(pair[0] + pair[1])
            i += 2
        else:
            merged.append(word[i])
            i += 1
    return tuple(merged)


def words_of(text: str) -> tuple[Word, ...]:
    """The words of a text as BPE begins with them: cut at spaces and punctuation, each a row of characters."""
    return tuple(tuple(word) for word, __ in pre_tokenizer("bpe").pre_tokenize_str(text))


def pair_counts(words: Iterable[tuple[Word, int]]) -> Counter[Pair]:
    """How often each pair of adjacent symbols occurs inside words; equal counts keep the order of the text."""
    counts: Counter[Pair] = Counter()
    for word, times in words:
        for pair in itertools.pairwise(word):
            counts[pair] += times
    return counts


def learn(words: Mapping[Word, int], merges: int, least: int = 2) -> tuple[Learned, ...]:
    """Learns up to `merges` merges: count the pairs, merge the most frequent one, begin again.

    Ties go to the pair that is met first.  Every step counts everything anew, so this is for small texts.

    `least`: pairs that occur less often are not merged.
    """
    now = list(words.items())
    steps: list[Learned] = []
    while len(steps) < merges:
        counts = pair_counts(now).most_common()  # equal counts stay in the order in which they were met
        if not counts or counts[0][1] < least:
            break
        pair = counts[0][0]
        now = [(merge(word, pair), times) for word, times in now]
        steps.append(Learned(pair, tuple(counts), tuple(now)))
    return tuple(steps)


def apply(words: Sequence[Word], table: Sequence[Pair], counts: Sequence[int] = ()) -> tuple[Applied, ...]:
    """Cuts words with a learned table: of the pairs that are there, merge the one learned first, until none is left."""
    ranks = {pair: rank for rank, pair in enumerate(table)}
    now = tuple(words)
    steps: list[Applied] = []
    while True:
        there = [ranks[pair] for word in now for pair in itertools.pairwise(word) if pair in ranks]
        if not there:
            return tuple(steps)
        rank = min(there)
        now = tuple(merge(word, table[rank]) for word in now)
        steps.append(Applied(table[rank], rank, counts[rank] if rank < len(counts) else None, now))


@cache
def bundled_table() -> tuple[tuple[Pair, ...], tuple[int, ...]]:
    """The merges of the lesson's BPE tokenizer in the order in which they were learned, and the count of each."""
    model = json.loads(scheme_tokenizer("bpe").to_json())["model"]
    counts = json.loads(asset("lessons", "tokens", "bpe-counts.json").read_text(encoding="utf-8"))
    return tuple((left, right) for left, right in model["merges"]), tuple(counts)
