"""Maps of words: the sum over the pieces of a key word, the mean over those of a query word."""

import numpy as np
import pytest

from tests.analysis.test_head_overview import KINDS_OF_MODEL, traced
from vizformer.analysis import head_maps, kinds, word_map, word_starts


def words_of(n: int, seed: int) -> list[int | None]:
    """Words of one to four pieces, and now and then a token that belongs to none."""
    rng, words = np.random.default_rng(seed), []
    word = 0
    while len(words) < n:
        words += [None] if rng.random() < 0.1 else [word] * int(rng.integers(1, 5))
        word += 1
    return words[:n]


def by_loop(weights: np.ndarray, rows: list[list[int]], columns: list[list[int]]) -> np.ndarray:
    return np.array([[np.mean([sum(weights[i, j] for j in key) for i in query]) for key in columns] for query in rows])


def groups(starts: np.ndarray, n: int) -> list[list[int]]:
    return [list(range(start, end)) for start, end in zip(starts, [*starts[1:], n], strict=True)]


@pytest.mark.parametrize("name", KINDS_OF_MODEL)
@pytest.mark.sample(2)
def test_the_map_of_words_is_that_of_a_loop(name: str) -> None:
    trace = traced(*KINDS_OF_MODEL[name])
    for kind in kinds(trace):
        weights = head_maps(trace, kind).weights[1, 3].astype(float)
        n_q, n_k = weights.shape
        rows, columns = word_starts(words_of(n_q, 1)), word_starts(words_of(n_k, 2), opened=(3, 5))
        found = word_map(weights, rows, columns)
        np.testing.assert_allclose(found, by_loop(weights, groups(rows, n_q), groups(columns, n_k)), atol=1e-9)
        np.testing.assert_allclose(found.sum(-1), 1, atol=1e-5)


def test_tokens_without_a_word_and_words_apart_stand_for_themselves() -> None:
    words = [None, 0, 0, 1, None, None, 1, 2, 2, 2]
    assert word_starts(words).tolist() == [0, 1, 3, 4, 5, 6, 7]
    assert word_starts(words, opened=[2]).tolist() == [0, 1, 3, 4, 5, 6, 7, 8, 9]
    assert word_starts([]).tolist() == []
    assert word_starts([7]).tolist() == [0]
