"""What stands in place of the sentence where the model cannot fill in hidden words."""

import streamlit as st

from vizformer.web.catalogue import model_cache
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.widgets import model_suggestions
from vizformer.web.words.i18n import _


def draw_other_model(model: ModelRef) -> None:
    """Says what this model lacks, and offers one that has it."""
    if model_cache.shape(model).architecture != "encoder-only":
        lacking = _(
            "This model predicts the next token. An encoder-only model trained with [MASK] fills in hidden "
            "words: it reads both sides of the gap."
        )
    elif not model_cache.predicts(model):
        lacking = _(
            "This model's files contain no output layer that predicts tokens: it turns a text into vectors and "
            "cannot fill a gap."
        )
    else:
        lacking = _("This model has no [MASK] token, so it cannot fill in hidden words.")
    st.info(lacking)
    model_suggestions.offer(model_suggestions.fills_blanks, "blanks", hidden="")
