"""Which layer of which stack is worked out."""

import streamlit as st

from vizformer.web.catalogue.subject import Subject
from vizformer.web.link import state
from vizformer.web.widgets import telling
from vizformer.web.widgets.choices import line
from vizformer.web.widgets.lab import aside
from vizformer.web.words.errors import guarded
from vizformer.web.words.i18n import _


def stack_of_site() -> str:
    return "encoder" if state.view().kind == "encoder" else "decoder"


def choose_stack(known: list[str]) -> str:
    """Encoder or decoder; the link keeps it as the kind of attention of the other pages."""
    titles = {"encoder": _("Encoder"), "decoder": _("Decoder")}
    if stack_of_site() not in known:
        state.update(kind=known[0])
    state.show("layer.stack", stack_of_site())
    if len(known) > 1:
        st.segmented_control(
            _("Stack"),
            known,
            format_func=titles.__getitem__,
            required=True,
            label_visibility="collapsed",
            key="layer.stack",
            on_change=_take_stack,
        )
    return stack_of_site()


def _take_stack() -> None:
    state.unsay("layer", "head")
    state.update(kind=st.session_state["layer.stack"], step=0)


@guarded()
def choose_layer(subject: Subject) -> None:
    """Which layer of which stack, and why the page opens on it, if nobody chose it."""
    with line():
        stack = choose_stack([name for name in ("encoder", "decoder") if name in subject.trace.tokens])
        n_layers = subject.shape.layers_of(stack)
        state.fit(layer=n_layers)
        why = telling.open_on_a_layer(subject, "encoder" if stack == "encoder" else "decoder")
        names = [_("layer {layer}", layer=layer) for layer in range(n_layers)]
        st.selectbox(
            _("Layer"),
            range(n_layers),
            format_func=names.__getitem__,
            label_visibility="collapsed",
            width=160,
            **state.bind("layer"),
        )
        aside(why)
