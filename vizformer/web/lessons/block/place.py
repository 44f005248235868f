"""Which layer of which stack is looked at, and which token: the same choice as on the other pages."""

from typing import NamedTuple

import streamlit as st

from vizformer.web.catalogue.subject import Subject
from vizformer.web.link import state
from vizformer.web.widgets import attention_selector, lesson, row_names
from vizformer.web.words.i18n import _


class Place(NamedTuple):
    """A stack, one of its layers, and a position in its text."""

    stack: str
    layer: int
    row: int


def choose(subject: Subject, *, layer: bool = True, token: bool = True) -> Place:
    """Draws the boxes; a stack is asked for where there are two."""
    config, stacks = subject.config, [name for name in ("encoder", "decoder") if name in subject.trace.tokens]
    stack = "encoder" if state.view().kind == "encoder" else "decoder"
    if stack not in stacks:
        stack = stacks[0]
    if state.view().kind != stack:
        state.update(kind=stack, **lesson.held())
    n_layers = config.layers_of(stack)
    view = state.fit(layer=n_layers, query=len(subject.trace.tokens[stack]))
    with st.container(key=state.widget("bar-place"), horizontal=True, vertical_alignment="bottom"):
        if len(stacks) > 1:
            titles = {"encoder": _("Encoder"), "decoder": _("Decoder")}
            key = state.widget("block.stack")
            if st.session_state.get(key) != stack:
                st.session_state[key] = stack
            st.segmented_control(
                _("Stack"),
                stacks,
                format_func=titles.__getitem__,
                required=True,
                key=key,
                on_change=_take_stack,
                args=(key,),
                persist_state="session",
            )
        if layer:
            st.selectbox(_("Layer"), range(n_layers), **state.bind("layer"))
        if token:
            attention_selector.choose_query(subject, stack, _("Token"))
    if token:
        row_names.caption(subject, stack, view.query_of(subject.trace.tokens[stack]))
    return Place(stack, view.layer, view.query_of(subject.trace.tokens[stack]))


def _take_stack(key: str) -> None:
    if st.session_state[key] in ("encoder", "decoder"):
        state.update(kind=st.session_state[key], layer=0)
