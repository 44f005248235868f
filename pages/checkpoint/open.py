"""Open your own: the ways to a model of the reader's own; once it is open, its report."""

import streamlit as st

from vizformer.web.catalogue import model_list
from vizformer.web.frame import sitemap
from vizformer.web.link import state
from vizformer.web.tools.model_report import open_model
from vizformer.web.widgets.model_input import model_box

_BEFORE = "open.before"


def page() -> None:
    open_model.arrive()
    models = model_list.models()
    model = state.fit(model=models).model
    if state.arrives(_BEFORE):
        st.session_state[_BEFORE] = model
    if model != st.session_state[_BEFORE]:
        st.switch_page(sitemap.REPORT.file)
    model_box(models)
    open_model.progress()
    open_model.box(unfolded=True)


page()
