"""A map of tokens as a map of words: what a word of several pieces attends to, and what attends to it.

    word map[a, b] = mean over the pieces i of query word a of  sum over the pieces j of key word b of  A[i, j]

Attention to a word is attention to any of its pieces, so these are added; a query word asks once with each of its
pieces, so these are averaged.  Rows of a softmax then still sum to 1.

Source: Clark et al. 2019, "What Does BERT Look At?", section 4.1.
"""

from collections.abc import Collection, Sequence
from itertools import pairwise

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray


def word_starts(words: Sequence[int | None], opened: Collection[int] = ()) -> Int[ndarray, " n_words"]:
    """Where the words of a text begin: neighbours of the same word are one, but for the words that are `opened`.

    `words`: of each token the index of its word, None for one that stands for itself; the pieces of `opened` stay apart.
    """
    parts = [0] if words else []
    for index, (before, here) in enumerate(pairwise(words), start=1):
        if here is None or here != before or here in opened:
            parts.append(index)
    return np.array(parts, dtype=np.int64)


def word_map(
    weights: Float[ndarray, "*maps n_q n_k"], queries: Int[ndarray, " query_words"], keys: Int[ndarray, " key_words"]
) -> Float[ndarray, "*maps query_words key_words"]:
    """The map of words; see the module."""
    summed = np.add.reduceat(weights.astype(np.float64), keys, axis=-1)
    pieces = np.diff(queries, append=weights.shape[-2])
    return np.add.reduceat(summed, queries, axis=-2) / pieces[:, None]
