"""The boxes that choose an attention, a layer, a head and a query; the same choice on every page."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from vizformer.analysis import Kind, kinds, site_name
from vizformer.analysis.heads.measures import TellingHead, find_telling_head
from vizformer.components import attention, cells
from vizformer.components.packing import HeadsPayload
from vizformer.errors import VizformerError
from vizformer.figures.figure import Figure
from vizformer.text import Token
from vizformer.web.catalogue import head_files, subject_cache
from vizformer.web.catalogue.subject import Subject
from vizformer.web.catalogue.subject_functions import of_trace
from vizformer.web.frame import head_routes
from vizformer.web.link import state
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.link.view import View, Without, written_query
from vizformer.web.widgets import chart, data_table, lesson, map_words, model_suggestions
from vizformer.web.widgets.chart import Picture, take_away
from vizformer.web.words import labels
from vizformer.web.words.errors import guarded, plain
from vizformer.web.words.i18n import _

head = of_trace(find_telling_head)


@guarded()
def choose(subject: Subject, *, cross: bool = True, query: bool = True) -> str:
    """Draws the boxes, which open on the head that the numbers single out; what is to be said below the picture (Markdown):
    why on this one, what the row of the query chooses, on which token the head rests, if it does, and that no head finds a
    pronoun's noun.

    `cross`: whether cross-attention can be chosen; where it cannot and is, the decoder's self-attention takes over.
    """
    shape = subject.shape
    usable = tuple(kind for kind in kinds(subject.trace) if cross or kind != "cross")
    if not cross and state.view().kind == "cross":
        state.update(kind="decoder")
    kind = state.fit(kind=usable).kind
    n_layers = shape.layers_of(kind)
    queries = subject.trace.tokens[labels.stacks(kind)[0]]
    state.fit(layer=n_layers, head=shape.n_heads, query=len(queries))
    why = open_on_a_head(subject, kind)
    with st.container(key=state.widget("bar-place"), horizontal=True, vertical_alignment="bottom"):
        if len(usable) > 1:
            st.segmented_control(
                _("Kind of attention"), usable, format_func=labels.kind_button, required=True, **_bind("kind")
            )
        st.selectbox(_("Layer"), range(n_layers), **_bind("layer"))
        st.selectbox(_("Head"), range(shape.n_heads), **_bind("head"))
        if query:
            choose_query(subject, kind)
    row = map_words.said(subject, kind, state.view().query_of(queries)) if query else ""
    rests = map_words.resting_on(subject, kind, state.view().layer, state.view().head)
    found = map_words.pronoun(subject) if kind == usable[0] else None
    return " ".join(filter(None, (why, row, rests, plain(found[1]) if found else "")))


def choose_query(subject: Subject, kind: str, label: str = "") -> None:
    """The box that chooses a row of an attention; `label` is what it is called, where that is not "Query"."""
    queries = subject.trace.tokens[labels.stacks(kind)[0]]
    shown, numbered = state.view().query_of(queries), map_words.numbered(subject, kind)
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


# What a page opens on where nobody has chosen a head: the one that the numbers of this sentence single out, and why.
#
# Of a model that the reader opened, pages that would begin with a head by another measure begin with this one too,
# so that whoever comes from the page Attention finds the same head: What each head does, Where does the answer come
# from?, What if, and Side by side, of two texts.
def usual_head(subject: Subject, kind: Kind) -> tuple[int, int]:
    found = (
        None if subject.edited else head(subject, kind, View().query_of(subject.trace.tokens[labels.stacks(kind)[0]]))
    )
    return (0, 0) if found is None else (found.layer, found.head)


def open_on_a_head(subject: Subject, kind: Kind) -> str:
    """Shows that head where nobody has chosen one, or a row or a cell of it; why, in a sentence (Markdown)."""
    found = _suggested(subject, kind)
    return "" if found is None else why(*found)


def place_elsewhere(subject: Subject, kind: Kind) -> tuple[int, int] | None:
    """The layer and the head that the page Attention shows of a model that the reader opened; None of any other model."""
    if not subject.model.is_from_elsewhere or subject.edited:
        return None
    state.fit(layer=subject.shape.layers_of(kind), head=subject.shape.n_heads)
    open_on_a_head(subject, kind)
    return state.view().layer, state.view().head


def open_elsewhere(model: ModelRef, kind: Kind) -> str:
    """`open_on_a_head` of a model that the reader opened, on a page that reads other texts than the reader's."""
    if not model.is_from_elsewhere:
        return ""
    model_suggestions.fit_text(model)
    view = state.view()
    subject = Subject(model, view.text, view.target)
    with suppress(VizformerError):  # a text that it does not read: then the page has a head of its own
        return "" if subject.is_long else open_on_a_head(subject, kind)
    return ""


def open_on_a_layer(subject: Subject, kind: Kind) -> str:
    """Shows the layer of that head, on a page that shows a layer as a whole; why, in a sentence (Markdown)."""
    if (suggested := _suggested(subject, kind)) is None:
        return ""
    found, query, key = suggested
    if found.resting:
        return _(
            "Shown: layer {layer}. Of the heads that do not rest on one token, its head {head} gives “{query}” "
            "the largest weight on another word, “{key}” ({weight}).",
            **_values(found, query, key),
        )
    return _(
        "Shown: layer {layer}. Of all heads, its head {head} gives “{query}” the largest weight on another "
        "word, “{key}” ({weight}).",
        **_values(found, query, key),
    )


def _suggested(subject: Subject, kind: Kind) -> tuple[TellingHead, Token, Token] | None:
    """The telling head, its query and its key, where it is shown because nobody has chosen a head; else None."""
    view = state.view()
    if subject.edited or view.query is not None or view.key is not None or view.lines:
        return None
    queries, keys = (subject.trace.tokens[stack] for stack in labels.stacks(kind))
    query = view.query_of(queries)
    found = head(subject, kind, query)
    if found is None or not state.suggest(layer=found.layer, head=found.head):
        return None
    return found, queries[query], keys[found.key]


def why(found: TellingHead, query: Token, key: Token) -> str:
    """Why a page opens on a head: what its row of `query` looks at (Markdown)."""
    if found.resting:
        return _(
            "Shown: layer {layer}, head {head}. Of the heads that do not rest on one token its row “{query}” has "
            "the largest weight on another word, “{key}” ({weight}).",
            **_values(found, query, key),
        )
    return _(
        "Shown: layer {layer}, head {head}. Of all heads its row “{query}” has the largest weight on another "
        "word, “{key}” ({weight}).",
        **_values(found, query, key),
    )


def _values(found: TellingHead, query: Token, key: Token) -> dict[str, object]:
    texts = {"query": plain(query.text), "key": plain(key.text)}
    return {"layer": found.layer, "head": found.head, **texts, "weight": f"{found.weight:.2f}"}


# All heads of one kind of attention as a grid, coloured by a number of each; the head that is shown, and a click on one.

ROW = 35  # px of a row of the table

Place = tuple[int, int]

AT_ONCE = 2**20
"""Bytes up to which all heads go to the browser with the page; of more, the one that is looked at comes first.

Measured with all-mpnet-base-v2 and 68 tokens, 4 MB: 1.4 s from Enter to the map at once, 1.0 s by the address; another
head takes 0.04 s both ways."""


def open_on_the_largest(values: NDArray[np.floating]) -> bool:
    """Shows the head with the largest value where nobody has chosen one; whether it does."""
    layer, head = np.unravel_index(int(np.where(np.isfinite(values), values, -np.inf).argmax()), values.shape)
    return state.suggest(layer=int(layer), head=int(head))


def grid(
    values: NDArray[np.floating],
    place: Place | None,
    figure: Callable[[], Figure],
    picture: Picture | None,
    *,
    key: str,
    columns: list[str] | None = None,
    chooses: Callable[[Place], Place] = lambda cell: cell,
    texts: list[list[str]] | None = None,
    said: dict[str, str] | None = None,
) -> None:
    """A cell for every head; a click chooses it.

    Args:
        values: [layers, heads], from 0 to 1.
        figure: the same as a figure: drawn where there are too many heads for a grid, or one has no number.
        columns: what they are called, where they are no heads.
        said: words of the grid that are not the usual ones.
    """
    if max(values.shape) > cells.LARGEST or not np.isfinite(values).all() or values.min() < 0 or values.max() > 1:
        chart.show(figure(), key=f"{key}.picture")
        return
    usual = {
        "grid_label": _(
            "Rows are layers, columns are heads. The arrow keys move from cell to cell, Enter chooses one."
        ),
        "cell": _("layer {row}, head {column}"),
        "none": _("No head is chosen."),
    }
    chosen = cells.mount(
        [_("L{layer}", layer=layer) for layer in range(values.shape[0])],
        columns or [_("H{head}", head=head) for head in range(values.shape[1])],
        values=values,
        texts=texts,
        selected=place,
        words=usual | (said or {}),
        key=f"{key}.cells",
    )
    if picture is not None:
        take_away(picture, key=f"{key}.cells")
    if chosen is not None and chosen != place:
        layer, head = chooses(chosen)
        state.update(layer=layer, head=head)


def table(columns: dict[str, Any], places: list[Place], *, key: str, most_rows: int, **more: Any) -> None:
    """Numbers of heads; a click on a row chooses its head."""

    def take() -> None:
        rows = st.session_state[f"{key}.table"]["selection"]["rows"]
        if rows and rows[0] < len(places):
            state.update(layer=places[rows[0]][0], head=places[rows[0]][1])

    data_table.show(
        columns,
        hide_index=True,
        height=ROW * (1 + min(len(places), most_rows)) + 2,
        on_select=take,
        selection_mode="single-row",
        key=f"{key}.table",
        **more,
    )


def in_order(values: NDArray[np.floating]) -> list[Place]:
    """All heads, the largest values first, those without a number last."""
    order = np.argsort(-np.where(np.isfinite(values), values, -np.inf), axis=None, kind="stable")
    return [(int(index) // values.shape[1], int(index) % values.shape[1]) for index in order]


def packed(subject: Subject, kind: Kind, shape: tuple[int, int, int, int], without: Without = "none") -> HeadsPayload:
    """What `attention.mount` and `reading.mount` show; `shape` is (layers, heads, queries, keys)."""
    if attention.fits(shape, limit=AT_ONCE):
        return subject_cache.heads(subject, kind, None, without)
    return head_files.packed(subject, kind, without, head_routes.base())
