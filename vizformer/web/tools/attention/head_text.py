"""The text itself as the picture of a head."""

from typing import Any

import streamlit as st

from vizformer.components import reading
from vizformer.web.link import state
from vizformer.web.link.view import written_query
from vizformer.web.tools.attention import aids, head_aggregation
from vizformer.web.tools.attention.heads_of_kind import Heads
from vizformer.web.widgets import head_downloads, packed_heads
from vizformer.web.widgets.downloads import take_away
from vizformer.web.widgets.running_text import tokens_with_spaces
from vizformer.web.words import labels


def as_text(heads: Heads) -> None:
    view, running = state.view(), [tokens_with_spaces(heads.subject, stack) for stack in labels.stacks(heads.kind)]
    one = view.over == "one" or not aids.fits(heads.subject, heads.kind)
    key, shape = "text" if one else "text.together", heads.shape if one else (heads.shape[0], 1, *heads.shape[2:])
    last: reading.Reading | None = st.session_state.get(f"attention.{key}")
    pinned = last.pinned if last is not None and last.pinned is not None else None
    if pinned is None or pinned.side == "query":
        pinned = reading.Pin("query", view.query_of(heads.queries))
    wanted = reading.Reading(view.layer, view.head if one else 0, pinned)
    shown = reading.peek(key=key, selected=wanted)
    layer = 0 if reading.fits(shape, scored=one) else min(shown.layer, shape[0] - 1)
    payload = (
        packed_heads.packed(heads.subject, heads.kind, shape, view.without)
        if one
        else head_aggregation.payload((heads.subject, heads.kind, view.over, view.without, layer), heads.shape)
    )
    if payload is None:
        state.update(layer=min(shown.layer, shape[0] - 1))
        return
    shown_as: dict[str, Any] = {"query_tokens": running[0], "key_tokens": running[1]}
    found = reading.mount(payload, selected=wanted, key=key, **shown_as)
    st.session_state[f"attention.{key}"] = found
    query = view.query
    if found.pinned is not None and found.pinned.side == "query":
        query = written_query(found.pinned.index, heads.queries)
    state.update(layer=found.layer, head=found.head if one else view.head, query=query)
    pin = found.pinned or pinned
    name = aids.names_together(view.over)["head_name"].format(layer=found.layer) if not one else ""
    take_away(
        head_downloads.text_of(
            (lambda: head_downloads.map_and_reasons(heads.subject, heads.kind, found.layer, found.head, view.without))
            if one
            else (lambda: payload.map_of(found.layer, 0)),
            pin.index,
            pin.side,
            running,
            name or head_downloads.head_name(heads.kind, found.layer, found.head),
            lambda: reading.to_html(
                head_downloads.in_a_file(heads.subject, heads.kind, shape, found.layer, found.head, view.without)
                if one
                else payload,
                selected=found,
                **shown_as,
            ),
            (heads.subject, heads.kind, view.over if not one else "one", found.layer, found.head, view.without),
        ),
        key=key,
    )
