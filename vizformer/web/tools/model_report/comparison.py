"""A badge: the same numbers as `transformers`, where that package is installed."""

import streamlit as st

from vizformer.checkpoints.agreement_check import is_possible
from vizformer.web.catalogue import model_cache
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.widgets.laboratories import laboratory
from vizformer.web.widgets.watched_work import watched
from vizformer.web.words import model_words
from vizformer.web.words.i18n import _


@laboratory
def against_transformers(model: ModelRef, text: str) -> None:
    """A badge: the same numbers as `transformers`, where that package is installed."""
    if not is_possible():
        return
    found = watched(
        model_cache.agreement,
        (model, text),
        quick=False,
        runs=1,
        begin=_("Compare with transformers, for your sentence"),
        key="report.compare",
        said=lambda *__: _("Running both …"),
        takes=_("transformers is installed here: its numbers can be held against those of the pages."),
    )
    if found is None:
        return
    said = model_words.agreement(found)
    if found.holds:
        st.success(said)
    else:
        st.error(said)
