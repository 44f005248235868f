"""Open your own: a model that is open, and the ways to one of the reader's own; then its heads, or why it does not open."""

import streamlit as st

from vizformer.errors import VizformerError
from vizformer.web.catalogue import model_cache, model_list, sources
from vizformer.web.frame import sitemap
from vizformer.web.link import state
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.pages.model_report import open_model, recorded_code
from vizformer.web.pages.model_report.questions import read
from vizformer.web.pages.model_report.summary import example
from vizformer.web.widgets.model_input import model_box

_BEFORE = "open.before"


def page() -> None:
    open_model.arrive()
    models = model_list.models()
    model = state.fit(model=models).model
    if state.arrives(_BEFORE):
        st.session_state[_BEFORE] = model
    if model != st.session_state[_BEFORE]:
        st.switch_page(sitemap.ATTENTION.file if _opens(model) else sitemap.REPORT.file)
    model_box(models)
    open_model.progress()
    opened, form = st.columns([2, 3], gap="large")
    with form:
        open_model.box(unfolded=True)
    with opened:
        if model_cache.is_code(model) and sources.is_there(model):
            recorded_code.example(sources.title(model), model)
        elif (not model.is_from_elsewhere or sources.is_there(model)) and (report := read(model)) is not None:
            example(sources.title(model), report)


def _opens(model: ModelRef) -> bool:
    """Whether the files say what the model is, as far as can be told without reading its numbers."""
    if model_cache.is_code(model):
        return sources.is_there(model)
    try:
        found = model_cache.glance(sources.stamped(model))
    except VizformerError:
        return False
    return not found.problems and not found.open_questions


page()
