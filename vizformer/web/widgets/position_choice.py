"""The position of the last stack whose prediction is looked at."""

from typing import Any

import streamlit as st

from vizformer.analysis.one_forward.predictions import least_sure
from vizformer.components import tokens
from vizformer.web.catalogue import subject_cache
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import presses, sitemap
from vizformer.web.link import state
from vizformer.web.words import labels
from vizformer.web.words.errors import plain
from vizformer.web.words.i18n import _


def stack(subject: Subject) -> str:
    return "decoder" if "decoder" in subject.trace.tokens else "encoder"


def asked_position(subject: Subject) -> int | None:
    """The position that the text itself asks about: its end, where a model goes on with it, or the first [MASK]."""
    shape, sequence = subject.shape, subject.trace.tokens[stack(subject)]
    if shape.architecture == "decoder-only":
        return len(sequence) - 1
    masked = (i for i, token in enumerate(sequence) if shape.mask_id is not None and token.id == shape.mask_id)
    return next(masked, None) if shape.architecture == "encoder-only" else None


@cached
def unsure_position(subject: Subject) -> int:
    """The position at which the model is least sure of its answer; special tokens are left out where there are others."""
    sequence = subject.trace.tokens[stack(subject)]
    words = [i for i, token in enumerate(sequence) if not token.special]
    return least_sure(subject.checkpoint, subject.trace, words or range(len(sequence)))


def usual_position(subject: Subject) -> int:
    """The position that a page opens on."""
    asked = asked_position(subject)
    return unsure_position(subject) if asked is None else asked


def why(subject: Subject) -> str:
    """Why a page opens on this position, where nobody has chosen one and the text asks about none (Markdown)."""
    if state.view().position is not None or asked_position(subject) is not None:
        return ""
    position = unsure_position(subject)
    return _(
        "Shown: position {position}, “{token}”, the model's least certain prediction in this text ({probability}).",
        position=position,
        token=plain(subject.trace.tokens[stack(subject)][position].text),
        probability=labels.percent(subject_cache.predictions(subject, position)[0].probability),
    )


def choose(subject: Subject, *, key: str, usual: int | None = None, compared: bool = False) -> int:
    """Draws the tokens, of which one can be chosen, and returns the chosen position.

    `usual`: the position that is shown where none was chosen, else `usual_position`.
    `compared`: whether it is the answers at this position that are compared.
    """
    sequence = subject.trace.tokens[stack(subject)]
    chosen = state.fit(position=len(sequence)).position
    usual = usual_position(subject) if usual is None else usual
    if stack(subject) == "decoder":
        label = _("Choose a position: the model predicts the token after it")
        comparing = _("Compare the answer after this token")
    else:
        label = _("Choose a position: the model predicts the token there")
        comparing = _("Compare the answer at this token")
    position = tokens.mount(
        labels.chips(sequence),
        selected=usual if chosen is None else chosen,
        label=comparing if compared else label,
        key=key,
    )
    position = usual if position is None else position
    state.update(position=None if position == usual else position)
    return position


def ask_why(token: str, position: int, *, key: str, **also: Any) -> None:
    """The button; `also` is what else that page looks at, as fields of the view."""
    if presses.button(_("Why “{token}”?", token=plain(token)), type="tertiary", key=key):
        state.update(position=position, **also)
        st.switch_page(sitemap.LENS.file)
