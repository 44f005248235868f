"""Model report: what a model's files hold, what became of every tensor, and why a folder does not open."""

import streamlit as st

from vizformer.web.catalogue import model_cache, model_list, sources
from vizformer.web.link import state
from vizformer.web.pages.model_report import open_model, recorded_code, summary
from vizformer.web.pages.model_report.questions import absent, ask, read
from vizformer.web.pages.model_report.summary import (
    against_transformers,
    assumptions,
    components,
    draw_own_models,
    draw_summary,
    problems,
    tensors,
)
from vizformer.web.widgets.model_input import model_box
from vizformer.web.words.errors import guarded
from vizformer.web.words.i18n import _


def page() -> None:
    open_model.arrive()
    models = model_list.models()
    view = state.fit(model=models)
    model_box(models)
    open_model.progress()
    open_model.box()
    if view.model.is_from_elsewhere and not sources.is_there(view.model):
        absent(view.model)
    elif model_cache.is_code(view.model):
        guarded()(recorded_code.draw_recorded_code)(sources.stamped(view.model), view.text)
    elif (report := read(view.model)) is not None:
        if report.questions:
            with st.expander(_("Other assumptions")):
                ask(view.model, report.questions, dict(report.answers))
        if report.problems:
            problems(report)
        elif view.model.is_from_elsewhere:
            guarded()(summary.choose)(view.model, report)
        components(report)
        draw_summary(report)
        if report.format == "hugging-face" and not report.problems:
            against_transformers(sources.stamped(view.model), view.text)
        if report.config is None and not report.problems:
            guarded()(recorded_code.draw_found)(sources.stamped(view.model), view.text)
            guarded()(recorded_code.draw_checks)(sources.stamped(view.model))
        if report.assumptions:
            assumptions(report)
        tensors(report)
    draw_own_models()


page()
