"""All heads of one kind of attention, in the picture that the view asks for: a map, lines, or the text itself."""

from typing import Any

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.analysis import EffectiveAttention, effective_attention, site_name
from vizformer.components import reading
from vizformer.web.catalogue.subject import Subject
from vizformer.web.catalogue.subject_functions import of_trace
from vizformer.web.frame import presses
from vizformer.web.link import state
from vizformer.web.link.view import written_query
from vizformer.web.tools.attention import aids, head_maps, over_texts
from vizformer.web.tools.attention.head_lines import as_lines
from vizformer.web.tools.attention.head_maps import as_map, as_one_map
from vizformer.web.tools.attention.heads_of_kind import Heads
from vizformer.web.tools.attention.score_reasons import draw_reasons
from vizformer.web.widgets import chart, head_downloads, packed_heads, plain_heads, proof_badge, row_names, telling
from vizformer.web.widgets.downloads import take_away
from vizformer.web.widgets.folded_box import folded
from vizformer.web.widgets.laboratories import laboratory
from vizformer.web.widgets.running_text import tokens_with_spaces
from vizformer.web.words import labels
from vizformer.web.words.errors import guarded
from vizformer.web.words.i18n import _, show_markdown, show_note

LONGEST, DRAWN = 512, 64  # tokens: each row is taken apart by itself; a map is read up to so many
computed = of_trace(effective_attention)


@laboratory
def draw_heads(subject: Subject) -> None:
    kind = state.view().kind
    queries, keys = (subject.trace.tokens[stack] for stack in labels.stacks(kind))
    sizes = subject.shape
    n_layers = sizes.layers_of(kind)
    state.fit(layer=n_layers, head=sizes.n_heads, query=len(queries), key=len(keys))
    shape = (n_layers, sizes.n_heads, len(queries), len(keys))
    beside = aids.choose(subject, kind, telling.open_on_a_head(subject, kind))
    here = Heads(subject, kind, shape, queries, keys)
    if state.view().picture == "text":
        as_text(here)
    elif state.view().over != "one" and aids.fits(subject, kind):
        as_one_map(here)
    elif state.view().picture == "lines":
        as_lines(here)
    else:
        as_map(here)
    with beside:
        over_texts.tell(here)
    view = state.view()
    row_names.caption(subject, kind, view.query_of(queries))
    plain_heads.say(subject, kind, view.layer, view.head)
    there = "→ " + _(
        "Every number of head {head} in layer {layer}, for query {query}, step by step",
        head=view.head,
        layer=view.layer,
        query=view.query_of(queries),
    )
    if presses.button(there, type="tertiary", key="attention.steps"):
        state.keep_suggested()
        state.update(part="arithmetic")  # of the lesson, which begins with another part
        st.switch_page("pages/learn/qkv.py")
    draw_reasons(here)
    draw_effective(here)


def as_text(heads: Heads) -> None:
    """The text itself, coloured by one head, or by all heads of a layer together."""
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
        else head_maps.payload_together((heads.subject, heads.kind, view.over, view.without, layer), heads.shape)
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


def draw_effective(here: Heads) -> None:
    if max(len(here.queries), len(here.keys)) > LONGEST:
        return
    with folded(_("Which of these weights affect the output?"), key="attention.effective") as is_open:
        if is_open:
            guarded()(_draw)(here)


def _draw(here: Heads) -> None:
    view = state.view()
    query = view.query_of(here.queries)
    found = computed(here.subject, site_name(here.kind, view.layer), view.head)
    lost = np.abs(found.weights[query] - found.effective[query])
    key = int(lost.argmax())
    values = {"query": here.queries[query].text, "free": int(found.free[query])}
    if found.free[query]:
        show_markdown(
            "“{query}” sees **{free}** more keys than its values have independent directions: in so many "
            "directions a change of its weights does not change the output of the head. Without these directions "
            "the largest change is at “{key}”: **{weight}** becomes **{effective}**.",
            **values,
            key=here.keys[key].text,
            weight=f"{found.weights[query, key]:.3f}",
            effective=f"{found.effective[query, key]:.3f}".replace("-", "−"),
        )
    else:
        show_markdown(
            "Every weight of “{query}” affects the output: the values of the keys that it sees are independent, "
            "so no other weights give the same output. In longer texts they are not.",
            **values,
        )
    if found.free.any():  # else it is the map above
        _map(here, found, query, key)
    proof_badge.show(found.proof, edited=bool(here.subject.edited))
    show_note(
        "A row of weights has two parts: one is orthogonal to every column of the values and adds nothing to "
        "the output; the other is shown here (Brunner et al. 2020). It can be below 0, and need not sum to "
        "1. In Python: vf.analysis.effective_attention."
    )


def _around(at: int, n: int) -> slice:
    """DRAWN of n tokens, with `at` in the middle where both sides have as many."""
    first = min(max(0, at - DRAWN // 2), max(0, n - DRAWN))
    return slice(first, first + DRAWN)


def _map(here: Heads, found: EffectiveAttention, query: int, key: int) -> None:
    """The effective weights, of a long text those around this query and key."""
    view = state.view()
    rows, keys = _around(query, len(here.queries)), _around(key, len(here.keys))
    record = here.subject.trace[site_name(here.kind, view.layer)]
    chart.show(
        figures.attention_heatmap(
            found.effective[rows, keys],
            labels.texts(here.queries)[rows],
            labels.texts(here.keys)[keys],
            reasons=record.reason(view.head).cpu().numpy()[rows, keys],
            kind="effective",
            title=_("Effective attention"),
            words={"weight": _("effective weight")},
        ),
        key="attention.effective.map",
    )
