"""Heads as maps: one as a large map beside small ones of all, or the heads of a layer put together."""

from dataclasses import replace
from typing import Any

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.analysis import site_name
from vizformer.components import attention
from vizformer.components.packing import HeadsPayload
from vizformer.web.catalogue import head_pictures, subject_cache
from vizformer.web.catalogue.long_work import WORK
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link import state
from vizformer.web.link.view import Kind, Over, Without, written_query
from vizformer.web.pages.attention import choices, one_head
from vizformer.web.pages.attention.one_head import Heads
from vizformer.web.widgets import attention_selector, chart, head_downloads, proof_badge, watched_work
from vizformer.web.widgets.chart import take_away
from vizformer.web.words import labels
from vizformer.web.words.errors import guarded, plain
from vizformer.web.words.i18n import _, show_text, words

Call = tuple[Subject, Kind, Over, Without, int]

POLL = 0.5  # seconds between two looks at work that goes on
_BEGUN = "attention.together.begun"
_COLOURS = "attention.colours"


def payload_together(call: Call, shape: tuple[int, int, int, int]) -> HeadsPayload | None:
    """What `head_pictures.together` packs; None while it goes on, and once it was stopped."""
    subject, kind, over, without, _layer = call
    looked_through = (over == "mean" or over == "max") and head_pictures.small_together.holds(
        subject, kind, over, without
    )
    if max(shape[2:]) <= head_pictures.QUICK or looked_through or head_pictures.together.holds(*call):
        return head_pictures.together(*call)
    going = WORK.look(head_pictures.together, call, watched_work.reader())
    if head_pictures.together.holds(*call):  # it came to its end just now
        return head_pictures.together(*call)
    if going is None and st.session_state.get(_BEGUN) != call:
        _begin(call)
    elif going is None:
        show_text("The heads are not combined: you stopped it, or there was no memory for the result.")
        st.button(_("Combine the heads"), type="primary", key="attention.together.begin", on_click=_begin, args=(call,))
        return None
    st.fragment(guarded()(_watch), run_every=POLL)(call, shape[0])
    return None


def _begin(call: Call) -> None:
    """Begins it, and leaves what this reader wanted before."""
    if (before := st.session_state.get(_BEGUN)) is not None:
        WORK.leave(head_pictures.together, before, watched_work.reader())
    st.session_state[_BEGUN] = call
    WORK.begin(head_pictures.together, call, watched_work.reader())


def _watch(call: Call, layers: int) -> None:
    """Draws the progress of the work and the button that ends it, again and again while it runs."""
    going = WORK.look(head_pictures.together, call, watched_work.reader())
    if going is None:
        st.rerun()
    done = going.done[0]
    with st.container(horizontal=True, vertical_alignment="center"):
        st.progress(done / layers, text=_("Combining the heads: {done} of {n} layers", done=done, n=layers))
        leave = (head_pictures.together, call, watched_work.reader())
        st.button(_("Stop"), key="attention.together.stop", on_click=WORK.leave, args=leave)


# The page keeps what a component returned and passes it again; a difference is the page's own wish.


def as_map(heads: Heads) -> None:
    if heads.subject.model.is_from_elsewhere and heads.kind != "cross":
        state.suggest(order="habit")  # of a model that is new to the reader: what its heads do
    view = state.view()
    wanted = attention.Selection(
        view.layer,
        view.head,
        view.query_of(heads.queries),
        view.key,
        view.numbers,
        view.order,
        st.session_state.get(_COLOURS, "absolute"),
    )
    payload = attention_selector.packed(heads.subject, heads.kind, heads.shape, view.without)
    shown_as: dict[str, Any] = {
        "query_tokens": heads.query_tokens,
        "key_tokens": heads.key_tokens,
        "by_word": heads.by_word,
        "words": words(attention.ENGLISH),
    }
    selection = attention.mount(payload, selected=wanted, key="heads", strip=one_head.strip(heads), **shown_as)
    query = written_query(selection.query, heads.queries)
    looked = {"layer": selection.layer, "head": selection.head, "query": query, "key": selection.key}
    state.update(**looked, numbers=selection.view, order=selection.order)
    st.session_state[_COLOURS] = selection.colours
    take_away(
        head_downloads.one_head(
            heads.subject,
            heads.kind,
            selection.layer,
            selection.head,
            heads.query_tokens,
            heads.key_tokens,
            scores=selection.view == "scores",
            own_range=selection.colours == "own",
            page=lambda: attention.to_html(
                head_downloads.in_a_file(
                    heads.subject, heads.kind, heads.shape, selection.layer, selection.head, view.without
                ),
                selected=selection,
                **shown_as,
            ),
        ),
        *head_downloads.all_heads(heads.subject, heads.kind, heads.shape),
        key="heads",
    )
    if selection.key is not None:
        draw_terms(heads.subject, heads.kind, selection.layer, selection.head, selection.query, selection.key)


def as_one_map(heads: Heads) -> None:
    """All heads of a layer together, a map for each layer."""
    view = state.view()
    last = st.session_state.get("attention.together", attention.Selection())
    wanted = replace(last, layer=view.layer, query=view.query_of(heads.queries))
    shape = (heads.shape[0], 1, *heads.shape[2:])
    looked_at = min(attention.peek(key="heads.together", selected=wanted).layer, shape[0] - 1)
    layer = 0 if attention.fits(shape, scored=False) else looked_at
    payload = payload_together((heads.subject, heads.kind, view.over, view.without, layer), heads.shape)
    if payload is None:  # the map is off the page meanwhile, and what was chosen in it with it
        state.update(layer=looked_at)
        return
    names = heads.query_tokens
    said = words(attention.ENGLISH) | choices.names_together(view.over)
    shown_as: dict[str, Any] = {
        "query_tokens": names,
        "key_tokens": heads.key_tokens,
        "by_word": heads.by_word,
        "words": said,
    }
    selection = attention.mount(payload, selected=wanted, key="heads.together", **shown_as)
    st.session_state["attention.together"] = selection
    state.update(layer=selection.layer, query=written_query(selection.query, heads.queries))
    take_away(
        head_downloads.together(
            heads.subject,
            payload,
            heads.kind,
            selection.layer,
            said["head_name"],
            names,
            heads.key_tokens,
            lambda: attention.to_html(payload, selected=selection, **shown_as),
            own_range=selection.colours == "own",
        ),
        key="heads.together",
    )


@guarded()
def draw_terms(subject: Subject, kind: Kind, layer: int, head: int, query: int, key: int) -> None:
    """The terms of the score of a chosen cell, from the largest to the smallest, with their sum and its proof."""
    stacks = labels.stacks(kind)
    said = {
        "query": query,
        "query_token": plain(subject.trace.tokens[stacks[0]][query].text),
        "key": key,
        "key_token": plain(subject.trace.tokens[stacks[1]][key].text),
    }
    title = _("Where the score of query {query} “{query_token}” and key {key} “{key_token}” comes from", **said)
    with st.expander(title, key="attention.pair", on_change="rerun") as box:
        if not box.open:
            return
        found = subject_cache.pair(subject, site_name(kind, layer), head, query, key)
        st.caption(
            _(
                "Each bar is one of the {n} numbers of the query times that of the key, divided as the score is. They "
                "sum to {score}.",
                n=len(found.terms),
                score=f"{found.score:.4f}",
            )
            if found.position_bias == 0 and found.content == found.score
            else _(
                "Each bar is one of the {n} numbers of the query times that of the key, divided as the score is. "
                "They sum to {content}; the soft cap of this model changes this to {score}.",
                n=len(found.terms),
                content=f"{found.content:.4f}",
                score=f"{found.score:.4f}",
            )
            if found.position_bias == 0
            else _(
                "Each bar is one of the {n} numbers of the query times that of the key, divided as the score is. With "
                "{bias} for their distance they sum to {score}.",
                n=len(found.terms),
                bias=f"{found.position_bias:.4f}",
                score=f"{found.score:.4f}",
            )
        )
        order = found.order
        chart.show(
            figures.score_terms(order.astype(np.int32), found.terms[order], found.query[order], found.key[order]),
            key="attention.pair.bars",
        )
        proof_badge.show(found.proof, edited=bool(subject.edited))
