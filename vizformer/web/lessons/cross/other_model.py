"""Why a model has no cross-attention, and the way to one that has."""

import streamlit as st

from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.widgets import model_suggestions
from vizformer.web.words.i18n import _


def has_two_stacks(model: ModelRef) -> bool:
    return model_cache.options(model).architecture == "encoder-decoder"


def meets(subject: Subject, part: str) -> bool:
    """Whether the model has an encoder that its decoder can look at; else says why not, and offers one."""
    if has_two_stacks(subject.model):
        return True
    if subject.config.architecture == "decoder-only":
        why = _(
            "This model is a decoder alone. What it reads and what it writes is one text, so its self-attention already "
            "sees everything that there is to see: there is no second text, no memory, and no cross-attention."
        )
    else:
        why = _(
            "This model is an encoder alone. It reads a text and writes none: nobody is there to ask its output a "
            "question, and so there is no cross-attention."
        )
    st.info(why)
    model_suggestions.offer(has_two_stacks, f"cross.{part}")
    return False
