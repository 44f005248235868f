"""Static word vectors: one row for each word, wherever it stands.

Source: Mikolov et al. 2013, "Efficient Estimation of Word Representations in Vector Space" (the table, and sums such as
brother - he + she); the bundled table is made by `recipes.word_vectors`.
"""

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from safetensors import safe_open

_WORD = re.compile(r"[a-z]+(?:'[a-z]+)?|[\u4e00-\u9fff]")


def plain_words(text: str) -> list[str]:
    """Splits a text into the words of these vectors: lower-case runs of English letters, and single Chinese characters."""
    return _WORD.findall(text.lower().replace("’", "'"))


@dataclass(frozen=True, eq=False)
class WordVectors:
    words: tuple[str, ...]
    counts: tuple[int, ...]  # how often each occurred in the text that the table learned from
    unit: Float[ndarray, "n_words width"]  # the rows, less their mean, each of length 1 [n_words, width]

    @cached_property
    def rows(self) -> dict[str, int]:
        """The row index of each word."""
        return {word: row for row, word in enumerate(self.words)}

    @cached_property
    def average(self) -> float:
        """The mean cosine of two rows: (|sum of the rows|^2 - n) / (n (n - 1)) for rows of length 1."""
        n = len(self.unit)
        return float((np.square(self.unit.sum(0, dtype=np.float64)).sum() - n) / (n * (n - 1)))

    def nearest(self, word: str, most: int) -> list[tuple[str, float]]:
        """The words whose rows point most nearly in the direction of a word's row, with their cosines.

        Raises:
            KeyError: the table does not have the word.
        """
        return self._near(self.unit[self.rows[word]], {word}, most)

    def _near(self, direction: Float[ndarray, " width"], without: set[str], most: int) -> list[tuple[str, float]]:
        cosines = self.unit @ (direction / max(float(np.linalg.norm(direction)), 1e-12))
        order = (self.words[row] for row in np.argsort(-cosines))
        kept = [word for word in order if word not in without][:most]
        return [(word, float(cosines[self.rows[word]])) for word in kept]


def read_word_vectors(path: Path) -> WordVectors:
    """The table of a file that `recipes.word_vectors` wrote."""
    with safe_open(path, "np") as file:
        notes, vectors = file.metadata(), file.get_tensor("vectors").astype(np.float32)
    vectors = vectors - vectors.mean(0)
    unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return WordVectors(tuple(notes["words"].split("\n")), tuple(map(int, notes["counts"].split())), unit)
