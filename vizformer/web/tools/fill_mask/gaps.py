"""The tokens of the sentence, which of them are hidden, and how a gap is written."""

from vizformer.text import Token
from vizformer.web.catalogue.subject import Subject

Shown = tuple["Token", ...]
Positions = tuple[int, ...]


def mask_piece(subject: Subject) -> str:
    mask_id = subject.config.mask_id
    assert mask_id is not None  # the page has asked
    return subject.checkpoint.tokenizer.tokens([mask_id])[0].piece


def masked_text(subject: Subject, shown: Shown, hidden: Positions) -> str:
    """The text as typed, with [MASK] where words are hidden."""
    text = subject.text
    for position in sorted(hidden, reverse=True):
        text = text[: shown[position].start] + mask_piece(subject) + text[shown[position].end :]
    return text
