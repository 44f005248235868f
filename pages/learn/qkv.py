"""Q·K·V step by step: the arithmetic of one head and one query, for the typed sentence."""

import streamlit as st

from vizformer.components import matrix
from vizformer.web import labels, models, state
from vizformer.web.errors import guarded
from vizformer.web.i18n import _, translate
from vizformer.web.steps import show_step
from vizformer.web.subject import Subject, subject_box


def page() -> None:
    subject = subject_box()
    if subject is None:
        return
    place(subject)
    arithmetic(subject)


@guarded()
def place(subject: Subject) -> None:
    """Which attention, layer, head and query."""
    from vizformer.analysis import kinds

    trace = subject.trace
    config = models.checkpoint(subject.model).model.config
    kind = state.fit(site=kinds(trace)).site
    st.segmented_control(
        _("Site"), kinds(trace), format_func=labels.kind_label, required=True, **state.bind("site")
    )
    n_layers = config.n_encoder_layers if kind == "encoder" else config.n_decoder_layers
    queries = trace.tokens[labels.stacks(kind)[0]]
    state.fit(layer=n_layers, head=config.n_heads, query=len(queries))
    layer, head, query = st.columns([1, 1, 2])
    layer.selectbox(_("Layer"), range(n_layers), **state.bind("layer"))
    head.selectbox(_("Head"), range(config.n_heads), **state.bind("head"))
    numbered = labels.numbered(queries)
    query.selectbox(_("Query"), range(len(queries)), format_func=numbered.__getitem__, **state.bind("query"))


@st.fragment
@guarded()
def arithmetic(subject: Subject) -> None:
    """The steps, one at a time or all at once."""
    from vizformer.analysis import site_name

    view = state.view()
    site = site_name(view.site, view.layer)
    steps = models.steps(subject.model, subject.text, subject.target, site, view.head, view.query)
    key_tokens = labels.texts(subject.trace.tokens[labels.stacks(view.site)[1]])
    last = len(steps) - 1
    current = min(view.step, last)
    titles = [f"{index} · {translate(step.title)}" for index, step in enumerate(steps)]
    back, forward, choose, everything = st.columns([1.3, 1.3, 4, 1.6], vertical_alignment="bottom")
    back.button(_("Previous"), disabled=current == 0, shortcut="Left", width="stretch", key="steps.back",
                on_click=lambda: state.update(step=current - 1))  # fmt: skip
    forward.button(_("Next"), disabled=current == last, shortcut="Right", width="stretch", key="steps.forward",
                   on_click=lambda: state.update(step=current + 1))  # fmt: skip
    choose.selectbox(_("Step"), range(len(steps)), format_func=titles.__getitem__, **state.bind("step"))
    all_steps = everything.toggle(_("All at once"), key="steps.all", persist_state="session")
    st.progress((current + 1) / len(steps) if not all_steps else 1.0)
    st.html(matrix.style())
    for index, step in enumerate(steps):
        if all_steps or index == current:
            show_step(step, index, key_tokens, details=not all_steps)


page()
