"""What stands in place of a text where the model cannot write one."""

import streamlit as st

from vizformer.web.catalogue import model_cache
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.widgets import model_suggestions
from vizformer.web.words.i18n import _


def draw_other_model(model: ModelRef) -> None:
    """Says what this model lacks, and offers one that has it."""
    if model_suggestions.fills_blanks(model):
        lacking = _(
            "This model has no decoder: it fills in hidden words and does not continue a text. See the page "
            "“Fill in the blank”, or choose a model that writes."
        )
    elif model_cache.shape(model).architecture == "encoder-only":
        lacking = _("This model has no decoder: it reads a text and does not continue it. Choose a model that writes.")
    elif not model_cache.predicts(model):
        lacking = _(
            "This model's files contain no output layer that predicts tokens, so it cannot write. Choose a model "
            "that writes."
        )
    else:
        lacking = _(
            "This model's files name no start token, so it cannot begin to write. Give it on the page Model "
            "report, or choose another model."
        )
    st.info(lacking)
    model_suggestions.offer(model_suggestions.writes, "generation")
