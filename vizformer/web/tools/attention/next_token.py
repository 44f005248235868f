"""What the model expects after a position that the reader chooses."""

from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.components import tokens
from vizformer.web.catalogue import model_cache, subject_cache
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link import state
from vizformer.web.widgets import chart
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words import labels
from vizformer.web.words.figure_words import words
from vizformer.web.words.i18n import _

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vizformer.text import Token


def usual_position(subject: Subject, sequence: "Sequence[Token]") -> int:
    """Where a prediction says most: after the text, after the start of a translation, at the first [MASK]."""
    config = subject.config
    if config.architecture == "decoder-only":
        return len(sequence) - 1
    masked = (i for i, token in enumerate(sequence) if config.mask_id is not None and token.id == config.mask_id)
    return next(masked, 0) if config.architecture == "encoder-only" else 0


@laboratory
def next_token(subject: Subject) -> None:
    """The most probable next tokens after a position of the last stack."""
    if not model_cache.predicts(subject.model):
        st.caption(
            _(
                "This model's files hold no head that predicts tokens, so there is no prediction to show: its attention "
                "and its arithmetic are all there."
            )
        )
        return
    trace = subject.trace
    stack = "decoder" if "decoder" in trace.tokens else "encoder"
    sequence = trace.tokens[stack]
    st.subheader(_("What comes next?") if stack == "decoder" else _("What stands here?"), anchor=False)
    chosen, usual = state.fit(position=len(sequence)).position, usual_position(subject, sequence)
    position = tokens.mount(
        labels.chips(sequence),
        selected=usual if chosen is None else chosen,
        label=_("Choose a position: the model predicts the token after it")
        if stack == "decoder"
        else _("Choose a position: the model says what may stand there"),
        words=words(tokens.ENGLISH),
        key="next",
    )
    position = usual if position is None else position
    state.update(position=None if position == usual else position)
    best = subject_cache.predictions(subject, position)
    chart.show(
        figures.next_token_bars(
            [p.token.text for p in best],
            np.array([p.probability for p in best], dtype=np.float32),
            title=_("Most probable after position {position}", position=position)
            if stack == "decoder"
            else _("Most probable at position {position}", position=position),
            words=words(figures.ENGLISH),
        ),
        key="next.bars",
    )
