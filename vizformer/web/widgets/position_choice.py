"""The position of the last stack whose prediction is looked at."""

from collections.abc import Sequence

from vizformer.components import tokens
from vizformer.text import Token
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link import state
from vizformer.web.words import labels
from vizformer.web.words.figure_words import words
from vizformer.web.words.i18n import _


def stack(subject: Subject) -> str:
    """The stack that predicts."""
    return "decoder" if "decoder" in subject.trace.tokens else "encoder"


def usual_position(subject: Subject, sequence: Sequence[Token]) -> int:
    """Where a prediction says most: after the text, after the start of a translation, at the first [MASK]."""
    config = subject.config
    if config.architecture == "decoder-only":
        return len(sequence) - 1
    masked = (i for i, token in enumerate(sequence) if config.mask_id is not None and token.id == config.mask_id)
    return next(masked, 0) if config.architecture == "encoder-only" else 0


def choose(subject: Subject, *, key: str) -> int:
    """Draws the tokens, of which one can be chosen, and returns the chosen position."""
    sequence = subject.trace.tokens[stack(subject)]
    chosen, usual = state.fit(position=len(sequence)).position, usual_position(subject, sequence)
    position = tokens.mount(
        labels.chips(sequence),
        selected=usual if chosen is None else chosen,
        label=_("Choose a position: the model predicts the token after it")
        if stack(subject) == "decoder"
        else _("Choose a position: the model says what may stand there"),
        words=words(tokens.ENGLISH),
        key=key,
    )
    position = usual if position is None else position
    state.update(position=None if position == usual else position)
    return position
