"""What each head does: what every head of a model does, measured on many texts."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from vizformer.web.catalogue import model_list, sources
from vizformer.web.link import state
from vizformer.web.pages.head_report import head_reports, measuring
from vizformer.web.pages.head_report.results import draw_results
from vizformer.web.widgets import model_suggestions
from vizformer.web.widgets.choices import line
from vizformer.web.widgets.model_input import model_box
from vizformer.web.words.errors import guarded

POLL = 1.0  # seconds between two looks at a measuring that goes on


def page() -> None:
    models = model_list.models()
    state.fit(model=models)
    model_box(models)
    settings = line()
    model_suggestions.line(state.view().model)
    guarded()(below)(settings)


def below(settings: DeltaGenerator) -> None:
    model = sources.stamped(state.view().model)
    sources.folder(model)  # or says that it is not there
    with settings:
        corpus = measuring.texts(model)
    if corpus is None:
        return
    if (report := head_reports.bundled(model, corpus)) is not None:
        draw_results(model, corpus, report)
        return
    name = head_reports.name_of(model, corpus)
    now = measuring.look(name)
    if now is None:
        measuring.begin(model, corpus, name)
    elif now.phase in ("waiting", "running") and measuring.has_left(name):
        measuring.left(now)
    elif now.phase in ("waiting", "running"):
        st.fragment(guarded()(measuring.status), run_every=POLL)(name, now.phase)
    elif now.phase == "over":
        draw_results(model, corpus, head_reports.report(name))
    else:
        measuring.ended(model, corpus, name, now)


page()
