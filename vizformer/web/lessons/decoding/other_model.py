"""What stands in place of a laboratory where the model writes no text."""

import streamlit as st

from vizformer.web.catalogue.subject import Subject
from vizformer.web.widgets import model_suggestions
from vizformer.web.words.i18n import _


def writes(subject: Subject) -> bool:
    """Whether the model writes; where it does not, says why and offers one that does."""
    if model_suggestions.writes(subject.model):
        return True
    st.info(
        _(
            "This model does not write: it reads both sides of every token at once and says what stands in a gap. Text is "
            "written by a decoder, which sees only what comes before."
        )
        if subject.config.architecture == "encoder-only"
        else _("This model's files do not say how a text begins or what its next token is, so it cannot write one.")
    )
    model_suggestions.offer(model_suggestions.writes, "decoding")
    return False
