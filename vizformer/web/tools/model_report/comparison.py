"""A badge: the same numbers as `transformers`, where that package is installed."""

import streamlit as st

from vizformer.web.catalogue import model_cache
from vizformer.web.frame import presses
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.tools.model_report import report_words
from vizformer.web.widgets.laboratories import laboratory
from vizformer.web.words.i18n import _


@laboratory
def against_transformers(model: ModelRef, text: str) -> None:
    """A badge: the same numbers as `transformers`, where that package is installed."""
    if not report_words.can_compare():
        return
    asked = f"report.agreement.{model}.{text}"
    if not st.session_state.get(asked):
        if not presses.button(_("Compare with transformers, for your sentence"), key="report.compare"):
            return
        st.session_state[asked] = True
    with st.spinner(_("Running both …"), show_time=False):
        found = model_cache.agreement(model, text)
    said = report_words.agreement(found)
    if found.holds:
        st.success(said)
    else:
        st.error(said)
