"""All heads of one kind of attention: one of them as a large map, or several as lines."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import streamlit as st

from vizformer.components import attention, lines
from vizformer.web.catalogue import subject_cache
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link import state
from vizformer.web.link.view import written_query
from vizformer.web.widgets import row_names
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words import labels
from vizformer.web.words.figure_words import words
from vizformer.web.words.i18n import _

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vizformer.analysis import Kind
    from vizformer.text import Token


@dataclass(frozen=True)
class Heads:
    """The heads of the chosen kind of attention, and the tokens between which they attend."""

    subject: Subject
    kind: "Kind"
    shape: tuple[int, int, int, int]  # layers, heads, queries, keys
    queries: "Sequence[Token]"
    keys: "Sequence[Token]"

    @property
    def query_tokens(self) -> list[str]:
        return row_names.queries(self.subject, self.kind)

    @property
    def key_tokens(self) -> list[str]:
        return labels.texts(self.keys)


@laboratory
def heads(subject: Subject) -> None:
    """All heads of the chosen kind of attention: one of them as a large map, or several as lines."""
    kind = state.view().kind
    queries, keys = (subject.trace.tokens[stack] for stack in labels.stacks(kind))
    config = subject.config
    n_layers = config.n_encoder_layers if kind == "encoder" else config.n_decoder_layers
    state.fit(layer=n_layers, head=config.n_heads, query=len(queries))
    shape = (n_layers, config.n_heads, len(queries), len(keys))
    (as_lines if state.view().picture == "lines" else as_map)(Heads(subject, kind, shape, queries, keys))
    view = state.view()
    row_names.caption(subject, kind, view.query_of(queries))
    there = "→ " + _(
        "Every number of head {head} in layer {layer}, for query {query}, step by step",
        head=view.head,
        layer=view.layer,
        query=view.query_of(queries),
    )
    if st.button(there, type="tertiary", key="attention.steps"):
        state.update(part="arithmetic")  # of the lesson, which begins with another part
        st.switch_page("pages/learn/qkv.py")


# The page keeps what a component returned and passes it again; a difference is the page's own wish.


def as_map(heads: Heads) -> None:
    view = state.view()
    last = st.session_state.get("attention.selection", attention.Selection())
    wanted = replace(last, layer=view.layer, head=view.head, query=view.query_of(heads.queries), order=view.order)
    shown = attention.peek(key="heads", selected=wanted)
    chosen = None if attention.fits(heads.shape) else (shown.layer, shown.head)
    selection = attention.mount(
        subject_cache.heads(heads.subject, heads.kind, chosen),
        query_tokens=heads.query_tokens,
        key_tokens=heads.key_tokens,
        selected=wanted,
        words=words(attention.ENGLISH),
        key="heads",
    )
    st.session_state["attention.selection"] = selection
    query = written_query(selection.query, heads.queries)
    state.update(layer=selection.layer, head=selection.head, query=query, order=selection.order)


def as_lines(heads: Heads) -> None:
    if not lines.fits((1, *heads.shape[1:]), scored=False):
        st.info(_("The text is too long for lines. The map shows every head of it."))
        return
    wanted = wanted_lines(st.session_state.get("attention.lines"))
    layer = min(lines.peek(key="lines", selected=wanted).layer, heads.shape[0] - 1)
    selection = lines.mount(
        subject_cache.lines(heads.subject, heads.kind, None if lines.fits(heads.shape, scored=False) else layer),
        query_tokens=heads.query_tokens,
        key_tokens=heads.key_tokens,
        selected=wanted,
        words=words(lines.ENGLISH),
        key="lines",
    )
    st.session_state["attention.lines"] = selection
    view, shown, pinned = state.view(), selection.heads or (), selection.pinned
    state.update(
        layer=selection.layer,
        head=view.head if view.head in shown else shown[0],
        query=pinned.index if pinned is not None and pinned.side == "query" else view.query,
    )


def wanted_lines(last: lines.LineSelection | None) -> lines.LineSelection:
    """The lines as they were left, brought to the layer, head and query that are looked at now."""
    view = state.view()
    query = None if view.query is None else lines.Pin("query", view.query)
    if last is None:
        return lines.LineSelection(view.layer, (view.head,), query)
    shown = last.heads if last.heads and view.head in last.heads else (view.head,)
    pinned = query if query and last.pinned is not None and last.pinned.side == "query" else last.pinned
    return replace(last, layer=view.layer, heads=shown, pinned=pinned)
