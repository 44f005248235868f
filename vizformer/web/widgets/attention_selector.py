"""The boxes that choose an attention, a layer, a head and a query; the same choice on every page."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from vizformer.analysis import kinds, site_name
from vizformer.text import Token
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link import state
from vizformer.web.link.view import written_query
from vizformer.web.widgets import lesson, plain_heads, row_names, telling
from vizformer.web.words import labels
from vizformer.web.words.errors import guarded, plain
from vizformer.web.words.i18n import _


@guarded()
def choose(
    subject: Subject, *, cross: bool = True, head: bool = True, query: bool = True, suggest: bool = False
) -> str:
    """Draws the boxes; what is to be said below the picture (Markdown): why they open on this head, where it was suggested,
    what the row of the query chooses, on which token the head rests, if it does, and that no head finds a pronoun's noun.

    `cross`: whether cross-attention can be chosen; where it cannot and is, the decoder's self-attention takes over.
    `suggest`: whether to open on the head that the numbers single out.
    """
    shape = subject.shape
    usable = tuple(kind for kind in kinds(subject.trace) if cross or kind != "cross")
    if not cross and state.view().kind == "cross":
        state.update(kind="decoder")
    kind = state.fit(kind=usable).kind
    n_layers = shape.layers_of(kind)
    queries = subject.trace.tokens[labels.stacks(kind)[0]]
    state.fit(layer=n_layers, head=shape.n_heads, query=len(queries))
    why = telling.open_on_a_head(subject, kind) if suggest else ""
    with st.container(key=state.widget("bar-place"), horizontal=True, vertical_alignment="bottom"):
        if len(usable) > 1:
            st.segmented_control(
                _("Kind of attention"), usable, format_func=labels.kind_button, required=True, **_bind("kind")
            )
        st.selectbox(_("Layer"), range(n_layers), **_bind("layer"))
        if head:
            st.selectbox(_("Head"), range(shape.n_heads), **_bind("head"))
        if query:
            choose_query(subject, kind)
    row = row_names.said(subject, kind, state.view().query_of(queries)) if query else ""
    rests = plain_heads.resting_on(subject, kind, state.view().layer, state.view().head) if head else ""
    found = plain_heads.pronoun(subject) if head and kind == usable[0] else None
    return " ".join(filter(None, (why, row, rests, plain(found[1]) if found else "")))


def choose_query(subject: Subject, kind: str, label: str = "") -> None:
    """The box that chooses a row of an attention; `label` is what it is called, where that is not "Query"."""
    queries = subject.trace.tokens[labels.stacks(kind)[0]]
    shown, numbered = state.view().query_of(queries), row_names.numbered(subject, kind)
    key = state.widget("view.query")
    state.show(key, shown)
    st.selectbox(
        label or _("Query"),
        range(len(queries)),
        format_func=numbered.__getitem__,
        key=key,
        on_change=_take_query,
        args=(key, queries),
        persist_state="session",
    )


def _bind(name: str) -> dict[str, Any]:
    """`state.bind`, where the choice may decide which part of the lesson a link opens: it is named along with it."""
    bound = state.bind(name)
    return bound | {"on_change": _take, "args": (name, bound["key"])}


def _take(name: str, key: str) -> None:
    chosen = st.session_state[key]
    if isinstance(chosen, str if name == "kind" else int):  # else: switched off, or the label of another list's option
        state.update(**{name: chosen}, **lesson.held())


def _take_query(key: str, tokens: Sequence[Token]) -> None:
    if isinstance(chosen := st.session_state[key], int):
        state.update(query=written_query(chosen, tokens), **lesson.held())


def query(subject: Subject) -> int:
    return state.view().query_of(subject.trace.tokens[labels.stacks(state.view().kind)[0]])


def site() -> str:
    """The trace's name of the attention that is chosen, e.g. "decoder.2.cross"."""
    return site_name(state.view().kind, state.view().layer)
