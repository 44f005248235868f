"""Cached computations of the page Fill in the blank, and how a gap is written."""

import numpy as np
from jaxtyping import Float

from vizformer import analysis
from vizformer.analysis import Guess, Prediction, hide, next_tokens
from vizformer.model import Trace
from vizformer.text import Token
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject

Shown = tuple["Token", ...]
Positions = tuple[int, ...]


def mask_piece(subject: Subject) -> str:
    mask_id = subject.shape.mask_id
    assert mask_id is not None  # the page has asked
    return subject.checkpoint.tokenizer.tokens([mask_id])[0].piece


def masked_text(subject: Subject, shown: Shown, hidden: Positions) -> str:
    """The text as typed, with [MASK] where words are hidden."""
    text = subject.text
    for position in sorted(hidden, reverse=True):
        text = text[: shown[position].start] + mask_piece(subject) + text[shown[position].end :]
    return text


@cached
def trace(subject: Subject, hidden: tuple[int, ...]) -> Trace:
    """The forward over the text with these positions hidden."""
    return hide(subject.checkpoint, subject.tokens, hidden)


@cached
def guesses(subject: Subject) -> Float[np.ndarray, " n"]:
    """The probability of each token where it alone is hidden."""
    return analysis.guesses(subject.checkpoint, subject.tokens)


@cached
def predictions(subject: Subject, hidden: tuple[int, ...], position: int) -> tuple[Prediction, ...]:
    return next_tokens(subject.checkpoint, trace(subject, hidden), position)


@cached
def guess(subject: Subject, hidden: tuple[int, ...], position: int) -> Guess:
    """The probability and the rank of the text's own token at the hidden `position`."""
    return analysis.guess(trace(subject, hidden), position, subject.tokens[position].id)


@cached
def looks_at(
    subject: Subject, hidden: tuple[int, ...], position: int, head: int | None
) -> Float[np.ndarray, "n_layers n"]:
    """Where a position looks, layer by layer: in one head, or averaged over the heads."""
    return analysis.looks_at(trace(subject, hidden), position, head)
