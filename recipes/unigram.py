"""Learning a Unigram vocabulary: begin with far too many pieces, and drop those that are missed least.

A word's probability is the sum over all ways to cut it into pieces, P(word) = sum_cuts prod_pieces p(piece); the p are
fitted by expectation-maximisation, then the pieces whose loss lowers the likelihood least are dropped, and so on.
The trainer of the `tokenizers` library takes its first pieces from the distinct words, each counted once, and so never
finds a frequent word such as "money" that no other word contains; here the words count as often as they occur.

Source: Kudo 2018, "Subword Regularization", section 3.2.
"""

import math
from collections import Counter
from collections.abc import Mapping

Pieces = dict[str, float]
"""Piece -> log probability."""

LONGEST = 12  # characters of a piece
SEEDS = 6  # times as many pieces to begin with as are wanted
KEEP = 0.75  # of the pieces in every round
ROUNDS = 2  # of expectation-maximisation before every pruning
_RARE = 0.5  # expected count below which a piece is dropped at once


def learn_pieces(words: Mapping[str, int], size: int) -> Pieces:
    """At most `size` pieces with their log probabilities, the most probable first; every character stays a piece.

    Args:
        words: each word with how often it occurs.
    """
    characters = {character for word in words for character in word}
    pieces = _seeds(words, characters, max(size * SEEDS, size + len(characters)))
    while True:
        for __ in range(ROUNDS):
            pieces = _maximise(_expect(words, pieces), characters)
        if len(pieces) <= size:
            return dict(sorted(pieces.items(), key=lambda item: (-item[1], item[0])))
        pieces = _prune(words, pieces, characters, max(size, int(len(pieces) * KEEP)))


def _seeds(words: Mapping[str, int], characters: set[str], count: int) -> Pieces:
    """Every character, and the substrings that save most: frequency times length."""
    found: Counter[str] = Counter()
    for word, times in words.items():
        for start in range(len(word)):
            for end in range(start + 1, min(len(word), start + LONGEST) + 1):
                found[word[start:end]] += times
    longer = ((piece, times) for piece, times in found.items() if len(piece) > 1 and times > 1)
    best = sorted(longer, key=lambda item: (-item[1] * len(item[0]), item[0]))[: max(0, count - len(characters))]
    counts = {**{character: found[character] for character in sorted(characters)}, **dict(best)}
    total = math.log(sum(counts.values()))
    return {piece: math.log(times) - total for piece, times in counts.items()}


def _expect(words: Mapping[str, int], pieces: Pieces) -> dict[str, float]:
    """How often each piece is expected, over all ways to cut every word (forward and backward sums)."""
    expected: dict[str, float] = dict.fromkeys(pieces, 0.0)
    p = {piece: math.exp(value) for piece, value in pieces.items()}
    for word, times in words.items():
        n = len(word)
        forward, backward = [1.0] + [0.0] * n, [0.0] * n + [1.0]
        spans = [
            (i, j, p[word[i:j]]) for i in range(n) for j in range(i + 1, min(n, i + LONGEST) + 1) if word[i:j] in p
        ]
        for i, j, value in spans:
            forward[j] += forward[i] * value
        for i, j, value in reversed(spans):
            backward[i] += value * backward[j]
        if forward[n] == 0.0:  # below what a float can hold: a very long word, left out of this round
            continue
        for i, j, value in spans:
            expected[word[i:j]] += times * forward[i] * value * backward[j] / forward[n]
    return expected


def _maximise(expected: Mapping[str, float], characters: set[str]) -> Pieces:
    kept = {piece: value for piece, value in expected.items() if value >= _RARE or piece in characters}
    total = math.log(sum(kept.values()))
    return {piece: math.log(max(value, 1e-3)) - total for piece, value in kept.items()}


def best_cut(word: str, pieces: Mapping[str, float], without: str = "") -> tuple[list[str], float]:
    """The most probable way to cut a word, and its log probability (Viterbi); `without` is not to be used.

    >>> best_cut("abc", {"a": -1.0, "b": -1.0, "c": -1.0, "ab": -1.5})
    (['ab', 'c'], -2.5)
    """
    n = len(word)
    best = [0.0] + [-math.inf] * n
    came = [0] * (n + 1)
    for j in range(1, n + 1):
        for i in range(max(0, j - LONGEST), j):
            piece = word[i:j]
            if piece in pieces and piece != without and best[i] + pieces[piece] > best[j]:
                best[j], came[j] = best[i] + pieces[piece], i
    cut, j = [], n
    while j > 0:
        cut.append(word[came[j] : j])
        j = came[j]
    return cut[::-1], best[n]


def _prune(words: Mapping[str, int], pieces: Pieces, characters: set[str], size: int) -> Pieces:
    """Drops the pieces whose absence costs least: used times (log p(piece) - log p(its best other cut))."""
    used: Counter[str] = Counter()
    for word, times in words.items():
        for piece in best_cut(word, pieces)[0]:
            used[piece] += times
    costs = {
        piece: used[piece] * (value - best_cut(piece, pieces, without=piece)[1])
        for piece, value in pieces.items()
        if piece not in characters
    }
    keep = sorted(costs, key=lambda piece: (-costs[piece], piece))[: max(0, size - len(characters))]
    return {piece: pieces[piece] for piece in (*sorted(characters), *keep)}
