"""Q·K·V step by step: the arithmetic of one head and one query, for the typed sentence."""

import streamlit as st

from vizformer.web import labels, models, state
from vizformer.web.editor import head_editor, what_changed
from vizformer.web.errors import guarded
from vizformer.web.i18n import _
from vizformer.web.steps import walk
from vizformer.web.subject import Subject, subject_box


def page() -> None:
    subject = subject_box()
    if subject is None:
        return
    place(subject)
    editing(subject)
    arithmetic(subject)


@guarded()
def place(subject: Subject) -> None:
    """Which attention, layer, head and query."""
    from vizformer.analysis import kinds

    trace = subject.trace
    config = models.checkpoint(subject.model).model.config
    kind = state.fit(site=kinds(trace)).site
    st.segmented_control(_("Site"), kinds(trace), format_func=labels.kind_label, required=True, **state.bind("site"))
    n_layers = config.n_encoder_layers if kind == "encoder" else config.n_decoder_layers
    queries = trace.tokens[labels.stacks(kind)[0]]
    state.fit(layer=n_layers, head=config.n_heads, query=len(queries))
    layer, head, query = st.columns([1, 1, 2])
    layer.selectbox(_("Layer"), range(n_layers), **state.bind("layer"))
    head.selectbox(_("Head"), range(config.n_heads), **state.bind("head"))
    numbered = labels.numbered(queries)
    query.selectbox(_("Query"), range(len(queries)), format_func=numbered.__getitem__, **state.bind("query"))


@guarded()
def editing(subject: Subject) -> None:
    """Numbers set by hand.  Outside the fragment: they change the subject of the whole page."""
    from vizformer.analysis import site_name

    head_editor(subject, site_name(state.view().site, state.view().layer))
    what_changed(subject)


@st.fragment
@guarded()
def arithmetic(subject: Subject) -> None:
    """The steps, one at a time or all at once."""
    from vizformer.analysis import site_name

    view = state.view()
    site = site_name(view.site, view.layer)
    steps = models.steps(*subject.key, site, view.head, view.query)
    key_tokens = labels.texts(subject.trace.tokens[labels.stacks(view.site)[1]])
    before = models.steps(*subject.unedited.key, site, view.head, view.query) if subject.edited else None
    walk(steps, lambda step: {"keys": key_tokens}, before)


page()
