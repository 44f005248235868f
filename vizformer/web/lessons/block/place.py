"""Where the laboratories of Add & norm, feed-forward look: a layer of a stack, and a token, as chosen on the other pages."""

from typing import Literal, NamedTuple

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from vizformer.explain import block_rows
from vizformer.web.catalogue.subject import Subject
from vizformer.web.catalogue.subject_functions import of_run
from vizformer.web.link import state
from vizformer.web.link.view import View
from vizformer.web.widgets import attention_selector, lesson, map_words
from vizformer.web.widgets.lab import Laboratory

Stack = Literal["encoder", "decoder"]
STACKS: tuple[Stack, ...] = ("encoder", "decoder")


class Place(NamedTuple):
    stack: str
    layer: int
    row: int


block_stream = of_run(block_rows.block_stream)


def usual(subject: Subject) -> Place:
    """Where nobody has chosen: the telling head's layer of the stack that reads the text, and the last word."""
    stack = next(name for name in STACKS if name in subject.trace.tokens)
    return Place(stack, attention_selector.usual_head(subject, stack)[0], View().query_of(subject.trace.tokens[stack]))


def line() -> DeltaGenerator:
    """One line of settings, broken into several where the page is narrow."""
    return st.container(key=state.widget("bar-place"), horizontal=True, vertical_alignment="bottom")


def choose(lab: Laboratory, subject: Subject, settings: DeltaGenerator | None = None) -> tuple[Place, str]:
    """Draws the boxes, in the line of other settings where there are some; a stack is asked for where there are two.

    Also what is to be said below the picture (Markdown): why this layer is shown, and what the token's row chooses.
    """
    stacks = [name for name in STACKS if name in subject.trace.tokens]
    stack: Stack = "encoder" if state.view().kind == "encoder" else "decoder"
    if stack not in stacks:
        stack = stacks[0]
    if state.view().kind != stack:
        state.update(kind=stack, **lesson.held())
    n_layers, tokens = subject.config.layers_of(stack), subject.trace.tokens[stack]
    state.fit(layer=n_layers, query=len(tokens))
    why, view = attention_selector.open_on_a_layer(subject, stack), state.view()
    with settings or line():
        if len(stacks) > 1:
            names, key = lab.texts("stack", stacks), state.widget("block.stack")
            state.show(key, stack)
            st.segmented_control(
                lab.text("stack.label"),
                stacks,
                format_func=names.__getitem__,
                required=True,
                key=key,
                on_change=_take_stack,
                args=(key,),
                persist_state="session",
            )
        st.selectbox(lab.text("layer"), range(n_layers), **state.bind("layer"))
        attention_selector.choose_query(subject, stack, lab.text("token"))
    row = view.query_of(tokens)
    return Place(stack, view.layer, row), " ".join(filter(None, (why, map_words.said(subject, stack, row))))


def _take_stack(key: str) -> None:
    if st.session_state[key] in STACKS:
        state.unsay("layer", "head")
        state.update(kind=st.session_state[key])
