"""Two sentences that differ in one place, written as one: "The [cat] left the [street] because [it] was too {tired/wide}."

Braces hold the two ways of filling the place, brackets the words that are looked at, in the order in which they come.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from vizformer.text import Token

_SLOT = re.compile(r"\{([^{}/]+)/([^{}/]+)\}")
MOST_PAIRS = 12  # all draws of so many coins are counted


@dataclass(frozen=True)
class Sentence:
    """A text and the places of its words that are looked at: (start, end) in characters."""

    text: str
    spans: tuple[tuple[int, int], ...]


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
