"""Which noun does a pronoun refer to?  The attention of its row to two nouns, in sentences that differ in one word.

The word decides which of the two nouns is meant; everything else is the same, so what a head always does (looking at the
noun that is nearer, or at the first one) cancels out.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from vizformer.analysis.heads.maps import head_maps, kinds
from vizformer.model.trace import Trace
from vizformer.text import Token

_SLOT = re.compile(r"\{([^{}/]+)/([^{}/]+)\}")
MOST_PAIRS = 12  # all draws of so many coins are counted


@dataclass(frozen=True)
class Sentence:
    """A text and the places of its words that are looked at: (start, end) in characters."""

    text: str
    spans: tuple[tuple[int, int], ...]


@dataclass(frozen=True, eq=False)
class ReferenceShift:
    """The shift of attention to the noun that the pronoun refers to."""

    # of each pair the one in which the first noun is meant, and the one in which the second is
    sentences: tuple[tuple[Sentence, Sentence], ...]
    # of the pronoun's row on both nouns, summed over their tokens: [pair, sentence, noun, layer, head]
    weights: Float[ndarray, "pairs 2 2 n_layers n_heads"]
    # [pair, layer, head], `((w_11 - w_12) - (w_21 - w_22)) / 2` with w_sn the weight in sentence s on noun n: the share
    # of the attention that moves from the wrong noun to the right one; 1 if all of it does
    shifts: Float[ndarray, "pairs n_layers n_heads"]
    # layer, head: where the mean over the pairs is largest
    layer: int
    head: int
    # of all ways in which coins could say which noun of each pair is right, the share in which the best of all heads
    # does as well as here (an exact sign-flip test of the maximum; Westfall & Young 1993)
    chance: float

    @property
    def mean(self) -> float:
        """The mean shift of the best head over all pairs."""
        return float(self.shifts[:, self.layer, self.head].mean())

    @property
    def right(self) -> int:
        """The number of pairs in which the best head's attention shifts to the noun that is meant."""
        return int((self.shifts[:, self.layer, self.head] > ROUNDING).sum())

    @property
    def found(self) -> int:
        """The number of sentences (two of each pair) in which the best head gives the right noun the larger weight."""
        weights = self.weights[..., self.layer, self.head]
        return int((weights[:, 0, 0] > weights[:, 0, 1]).sum() + (weights[:, 1, 1] > weights[:, 1, 0]).sum())

    @property
    def never_moves(self) -> bool:
        """Whether no row of any head moves but for rounding: the word comes after the pronoun, in a causal model."""
        return bool(np.abs(self.shifts).max() <= ROUNDING)


ROUNDING = 1e-5


def reference_shift(read: Callable[[str], Trace], pairs: Sequence[str]) -> ReferenceShift:
    """Measures at most `MOST_PAIRS` pairs of sentences, see `minimal_pair`; the brackets hold two nouns and the pronoun."""
    sentences = tuple(map(minimal_pair, pairs))
    weights = np.array([[_weights(read(one.text), one) for one in pair] for pair in sentences], dtype=np.float64)
    lead = weights[:, :, 0] - weights[:, :, 1]  # [pair, sentence, layer, head]
    shifts = (lead[:, 0] - lead[:, 1]) / 2
    means = shifts.mean(0)
    layer, head = (int(i) for i in np.unravel_index(int(means.argmax()), means.shape))
    flat = shifts.reshape(len(shifts), -1)
    best = (coins(len(flat)) @ flat / len(flat)).max(1)
    return ReferenceShift(sentences, weights, shifts, layer, head, float((best >= means.max() - 1e-12).mean()))


def _weights(trace: Trace, sentence: Sentence) -> Float[ndarray, "2 n_layers n_heads"]:
    kind = kinds(trace)[0]
    tokens = trace.tokens["encoder" if kind == "encoder" else "decoder"]
    first, second, pronoun = (list(places(tokens, span)) for span in sentence.spans)
    row = head_maps(trace, kind, queries=pronoun[-1] + 1).weights[:, :, -1]  # [n_layers, n_heads, n_k]
    return np.stack([row[..., first].sum(-1), row[..., second].sum(-1)])


# Two sentences that differ in one place, written as one: "The [cat] left the [street] because [it] was too
# {tired/wide}."
#
# Braces hold the two ways of filling the place, brackets the words that are looked at, in the order in which they
# come.
def minimal_pair(written: str) -> tuple[Sentence, Sentence]:
    """The two sentences; a ValueError where not exactly one place has two ways of filling it.

    Raises:
        ValueError: there is not exactly one place in braces with two ways of filling it.
    """
    slots = _SLOT.findall(written)
    if len(slots) != 1:
        raise ValueError(f"one {{a/b}} is needed, not {len(slots)}: {written}")
    one, other = (_marked(_SLOT.sub(filled, written)) for filled in slots[0])
    return one, other


def places(tokens: Sequence[Token], span: tuple[int, int]) -> tuple[int, ...]:
    """The tokens that cover a part of the span."""
    start, end = span
    return tuple(i for i, token in enumerate(tokens) if not token.special and token.start < end and token.end > start)


def coins(n: int) -> Float[ndarray, "draws n"]:
    """Every way in which n coins can fall, as +1 and -1; the first has +1 everywhere.

    Raises:
        ValueError: more coins than `MOST_PAIRS`.
    """
    if n > MOST_PAIRS:
        raise ValueError(f"{n} coins fall in too many ways; {MOST_PAIRS} at most")
    return np.array(list(product((1.0, -1.0), repeat=n)))


def _marked(text: str) -> Sentence:
    spans, plain, start = [], "", 0
    for part in re.split(r"([\[\]])", text):
        if part == "[":
            start = len(plain)
        elif part == "]":
            spans.append((start, len(plain)))
        else:
            plain += part
    return Sentence(plain, tuple(spans))
