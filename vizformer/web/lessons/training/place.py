"""Which prediction a part looks at: a row of a decoder, or a token that is hidden from an encoder."""

from dataclasses import dataclass

import streamlit as st

from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.training import computations
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.widgets import lesson, model_suggestions
from vizformer.web.words.i18n import _


@dataclass(frozen=True)
class Place:
    """A prediction.

    Attributes:
        hidden: the position that was chosen to be hidden, of an encoder; None for a decoder.
        index: which of the rows that are asked.
    """

    hidden: int | None
    index: int


def _can_be_asked(model: ModelRef) -> bool:
    return model_suggestions.writes(model) or model_suggestions.fills_blanks(model)


def rows(subject: Subject) -> bool:
    """Whether the model predicts and the text has something to predict; where not, says why."""
    if not _can_be_asked(subject.model):
        st.info(_("This model's files have no head that predicts tokens, so there is no loss to compute."))
        model_suggestions.offer(_can_be_asked, "training")
        return False
    if not _enough(subject):
        st.info(_("This text has one token only, so nothing follows it. Type one more word."))
        return False
    return True


def predicts(subject: Subject) -> bool:
    """Whether the model predicts and the text has something to predict."""
    return _can_be_asked(subject.model) and _enough(subject)


def _enough(subject: Subject) -> bool:
    tokens = subject.trace.tokens
    if subject.config.architecture == "encoder-only":
        return any(not token.special for token in tokens["encoder"])
    return subject.config.architecture == "encoder-decoder" or len(tokens["decoder"]) > 1


def choose(subject: Subject) -> Place | None:
    """The box that chooses; None where there is nothing to choose."""
    if not rows(subject):
        return None
    if subject.config.architecture == "encoder-only":
        tokens = subject.tokens
        ordinary = [i for i, token in enumerate(tokens) if not token.special]
        hidden = st.selectbox(
            _("Token that is hidden"),
            ordinary,
            format_func=lambda i: f"{i} · {tokens[i].text}",
            **lesson.setting("training.hidden", ordinary[len(ordinary) // 2], ordinary),
        )
        return at(subject, hidden)
    asked = computations.losses(subject, None).asked
    index = st.selectbox(
        _("Row"),
        range(len(asked)),
        format_func=lambda i: f"{i} · {asked[i].read.text} → {asked[i].right.text}",
        **lesson.setting("training.row", min(1, len(asked) - 1), range(len(asked))),
    )
    return Place(None, index)


def usual(subject: Subject) -> int | None:
    """What is hidden where nobody chose: of an encoder the token in the middle, of a decoder nothing."""
    if subject.config.architecture != "encoder-only":
        return None
    ordinary = [i for i, token in enumerate(subject.tokens) if not token.special]
    chosen = lesson.value("training.hidden", ordinary[len(ordinary) // 2], ordinary)
    return int(chosen)


def at(subject: Subject, hidden: int) -> Place:
    """The place of a hidden token."""
    return Place(hidden, computations.hidden_with(subject, hidden).index(hidden))
