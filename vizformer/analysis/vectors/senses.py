"""Does a model tell two senses of a word apart?  The cosines of its contextual vectors, layer by layer.

The word stands in the same frames in both senses, each time with one word changed ("went to the bank with his money",
"... with his boat").  Only vectors of different frames are compared, and every frame takes part in both senses: what the
frames themselves do to the vector cancels out.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from vizformer.analysis.heads.minimal_pairs import Sentence, coins, minimal_pair, places
from vizformer.analysis.vectors.contextual import reading_tokens, unit_rows
from vizformer.model.trace import Trace


@dataclass(frozen=True, eq=False)
class SenseGap:
    """Mean cosines of a word's vectors: place 0 is the layers' input, place l + 1 is after layer l."""

    # of each frame the sentence with the first sense and the one with the second
    sentences: tuple[tuple[Sentence, Sentence], ...]
    same: Float[ndarray, " places"]  # between two frames in the same sense
    different: Float[ndarray, " places"]  # between two frames in different senses
    # of all ways in which coins could say which sentence of a frame has which sense, the share in which `same -
    # different` is at least as large (an exact permutation test)
    chance: Float[ndarray, " places"]

    @property
    def share(self) -> Float[ndarray, " places"]:
        """(same - different) / (1 - different): 0 where senses make no difference; 1: two points, one for each sense."""
        room = 1.0 - self.different
        return np.where(room > ROUNDING, (self.same - self.different) / np.maximum(room, ROUNDING), 0.0)


ROUNDING = 1e-6


def sense_gap(read: Callable[[str], Trace], frames: Sequence[str]) -> SenseGap:
    """Measures a word in up to `MOST_PAIRS` frames, see `minimal_pairs`; the bracketed word is measured."""
    sentences = tuple(map(minimal_pair, frames))
    rows = np.array([[_vectors(read(one.text), one) for one in pair] for pair in sentences])  # [frame, sense, place, d]
    cosines = np.einsum("asld,btld->abstl", rows, rows)  # [frame, frame, sense, sense, place]
    pairs = cosines[~np.eye(len(rows), dtype=np.bool_)]
    same = (pairs[:, 0, 0] + pairs[:, 1, 1]).mean(0) / 2
    different = (pairs[:, 0, 1] + pairs[:, 1, 0]).mean(0) / 2
    # A coin that falls the other way exchanges the senses of its frame: same and different trade places with the frames
    # whose coins fall otherwise.
    lead = (cosines[:, :, 0, 0] + cosines[:, :, 1, 1] - cosines[:, :, 0, 1] - cosines[:, :, 1, 0]) / 2
    lead[np.eye(len(rows), dtype=np.bool_)] = 0.0
    signs = coins(len(rows))
    drawn = np.einsum("na,abl,nb->nl", signs, lead, signs) / len(pairs)
    return SenseGap(sentences, same, different, (drawn >= drawn[0] - ROUNDING).mean(0))


def _vectors(trace: Trace, sentence: Sentence) -> Float[ndarray, "places d_model"]:
    at = places(reading_tokens(trace), sentence.spans[0])[0]
    return unit_rows(trace, at)
