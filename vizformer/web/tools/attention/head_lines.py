"""Heads as lines between the tokens: several heads of a layer; of a text too long for all of its lines a part."""

from dataclasses import dataclass, replace
from math import isqrt
from typing import Any

import streamlit as st

from vizformer.analysis import Kind
from vizformer.components import lines
from vizformer.components.packing import pack_lines
from vizformer.components.payload import LIMIT_BYTES, HeadsPayload
from vizformer.web.catalogue import subject_cache
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link import line_settings, state
from vizformer.web.link.line_settings import LineSettings
from vizformer.web.link.view import Without
from vizformer.web.tools.attention.heads_of_kind import Heads
from vizformer.web.widgets import head_downloads
from vizformer.web.widgets.downloads import take_away
from vizformer.web.words.i18n import _, show_note

TOKENS = 400  # of a part; fewer where a layer has very many heads
_START = "attention.lines.start"


@dataclass(frozen=True)
class Part:
    """The queries and keys that are shown, by their numbers in the text."""

    queries: range
    keys: range

    def inside(self, pin: lines.Pin | None) -> lines.Pin | None:
        """A token of the text by its place in the part; None where it is not in it."""
        if pin is None or pin.index not in self._of(pin.side):
            return None
        return replace(pin, index=pin.index - self._of(pin.side).start)

    def in_text(self, pin: lines.Pin | None) -> lines.Pin | None:
        """A token of the part by its number in the text."""
        return pin if pin is None else replace(pin, index=pin.index + self._of(pin.side).start)

    def _of(self, side: str) -> range:
        return self.queries if side == "query" else self.keys


def choose(shape: tuple[int, int, int, int], query: int) -> Part:
    """The part that the link says, or that the reader moves to, else that around the query; all of a short text."""
    __, heads, n_queries, n_keys = shape
    if lines.fits((1, *shape[1:]), scored=False):
        return Part(range(n_queries), range(n_keys))
    tokens = min(TOKENS, isqrt(LIMIT_BYTES // (2 * heads)))
    longest = max(n_queries, n_keys)
    said = line_settings.read(state.view().lines).start
    start = max(0, min(longest - tokens, query - tokens // 2 if said is None else said))
    st.session_state[_START] = start
    st.slider(
        _("The text is too long for all lines: show a part, from token"),
        0,
        longest - tokens,
        step=1,
        key=_START,
        on_change=_move,
    )
    show_note(
        "Tokens {first} to {last} of {n}. The weights are those of the whole text; lines to tokens outside of this "
        "part are not drawn.",
        first=start,
        last=start + tokens - 1,
        n=f"{longest:,}",
    )
    return Part(*(_within(n, start, tokens) for n in (n_queries, n_keys)))


def _within(n: int, start: int, tokens: int) -> range:
    first = max(0, min(start, n - tokens))
    return range(first, min(n, first + tokens))


def _move() -> None:
    settings = line_settings.read(state.view().lines)
    state.update(lines=line_settings.write(replace(settings, start=st.session_state[_START])))


@cached
def packed(subject: Subject, kind: Kind, layer: int, part: Part, without: Without) -> HeadsPayload:
    """The weights of one layer's heads between the tokens of a part."""
    heads = subject_cache.numbers(subject, kind, without)
    return pack_lines(heads, layer=layer, queries=part.queries, keys=part.keys)


def as_lines(heads: Heads) -> None:
    part = choose(heads.shape, state.view().query_of(heads.queries))
    wanted = wanted_lines(part)
    layer = min(lines.peek(key="lines", selected=wanted).layer, heads.shape[0] - 1)
    if lines.fits((1, *heads.shape[1:]), scored=False):
        held = None if lines.fits(heads.shape, scored=False) else layer
        payload = subject_cache.lines(heads.subject, heads.kind, held, state.view().without)
    else:
        payload = packed(heads.subject, heads.kind, layer, part, state.view().without)
    names: dict[str, Any] = {
        "query_tokens": heads.query_tokens[part.queries.start : part.queries.stop],
        "key_tokens": heads.key_tokens[part.keys.start : part.keys.stop],
    }
    selection = lines.mount(payload, selected=wanted, key="lines", **names)
    view, shown, pinned = state.view(), selection.heads or (), part.in_text(selection.pinned)
    head = view.head if view.head in shown else shown[0]
    query = pinned.index if pinned is not None and pinned.side == "query" else view.query
    drawn = drawn_lines(replace(selection, pinned=pinned), None if shown == (head,) else shown, query, part)
    state.update(layer=selection.layer, head=head, query=query, lines=line_settings.write(drawn))
    take_away(
        head_downloads.lines(
            heads.subject,
            heads.kind,
            selection,
            (part.queries, part.keys),
            **names,
            page=lambda: lines.to_html(payload, selected=selection, **names),
        ),
        key="lines",
    )


def drawn_lines(
    selection: lines.LineSelection, heads: tuple[int, ...] | None, query: int | None, part: Part
) -> LineSettings:
    """The line settings for the link, besides layer, head and query."""
    pinned, before = selection.pinned, line_settings.read(state.view().lines)
    if pinned is None and before.key is not None and before.key not in part.keys:
        pinned = lines.Pin("key", before.key)  # it is kept, and not in sight
    elsewhere = query is not None and query not in part.queries
    return LineSettings(
        start=before.start,
        heads=heads,
        threshold=None if selection.threshold == lines.THRESHOLD else selection.threshold,
        key=pinned.index if pinned is not None and pinned.side == "key" else None,
        let_go=before.let_go if pinned is None and elsewhere else pinned is None and query is not None,
    )


def wanted_lines(part: Part) -> lines.LineSelection:
    """The lines that the view asks for; the token that is kept by its place in the part."""
    view = state.view()
    said = line_settings.read(view.lines)
    pinned = None if view.query is None or said.let_go else lines.Pin("query", view.query)
    pinned = pinned if said.key is None else lines.Pin("key", said.key)
    return lines.LineSelection(
        view.layer,
        said.heads if said.heads and view.head in said.heads else (view.head,),
        part.inside(pinned),
        lines.THRESHOLD if said.threshold is None else said.threshold,
    )
