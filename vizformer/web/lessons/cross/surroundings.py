"""What the laboratories of the lesson have around them: a model without cross-attention, and the pages that go on."""

import streamlit as st

from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame.sitemap import Entry
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.widgets import model_suggestions
from vizformer.web.widgets.lab import Laboratory
from vizformer.web.words.i18n import translate


def has_two_stacks(model: ModelRef) -> bool:
    return model_cache.shape(model).architecture == "encoder-decoder"


def meets(lab: Laboratory, subject: Subject) -> bool:
    """Whether the model has an encoder that its decoder can look at; else says why not, and offers one."""
    if has_two_stacks(subject.model):
        return True
    decoder = subject.config.architecture == "decoder-only"
    st.info(lab.text("alone", form="decoder" if decoder else "encoder"))
    model_suggestions.offer(has_two_stacks, f"cross.{lab.key}")
    return False


def see_also(lab: Laboratory, *entries: Entry) -> None:
    """Draws a link to each page that goes on with the subject."""
    with st.container(horizontal=True):
        for entry in entries:
            st.page_link(entry.file, label=lab.text("also", page=translate(entry.title)))
