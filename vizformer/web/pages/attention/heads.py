"""All heads of one kind of attention, in the picture that the view asks for: a map, lines, or the text itself."""

from dataclasses import dataclass, replace
from math import isqrt
from typing import Any

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.analysis import EffectiveAttention, Kind, effective_attention, site_name
from vizformer.components import lines, reading
from vizformer.components.packing import LIMIT_BYTES, HeadsPayload, pack_lines
from vizformer.web.catalogue import subject_cache
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.catalogue.subject_functions import of_trace
from vizformer.web.frame import presses
from vizformer.web.link import line_settings, state
from vizformer.web.link.line_settings import LineSettings
from vizformer.web.link.view import Without, written_query
from vizformer.web.pages.attention import choices, head_maps, one_head
from vizformer.web.pages.attention.head_maps import as_map, as_one_map
from vizformer.web.pages.attention.one_head import Heads, draw_reasons
from vizformer.web.widgets import attention_selector, chart, head_downloads, map_words, proof_badge
from vizformer.web.widgets.chart import take_away
from vizformer.web.widgets.laboratories import folded, laboratory
from vizformer.web.widgets.map_words import tokens_with_spaces
from vizformer.web.words import labels
from vizformer.web.words.errors import guarded
from vizformer.web.words.i18n import _, show_markdown, show_note

LONGEST, DRAWN = 512, 64  # tokens: each row is taken apart by itself; a map is read up to so many
computed = of_trace(effective_attention)

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


@laboratory
def draw_heads(subject: Subject) -> None:
    kind = state.view().kind
    queries, keys = (subject.trace.tokens[stack] for stack in labels.stacks(kind))
    sizes = subject.shape
    n_layers = sizes.layers_of(kind)
    state.fit(layer=n_layers, head=sizes.n_heads, query=len(queries), key=len(keys))
    shape = (n_layers, sizes.n_heads, len(queries), len(keys))
    beside = choices.choose(subject, kind, attention_selector.open_on_a_head(subject, kind))
    here = Heads(subject, kind, shape, queries, keys)
    if state.view().picture == "text":
        as_text(here)
    elif state.view().over != "one" and choices.fits(subject, kind):
        as_one_map(here)
    elif state.view().picture == "lines":
        as_lines(here)
    else:
        as_map(here)
    with beside:
        one_head.tell(here)
    view = state.view()
    map_words.caption(subject, kind, view.query_of(queries))
    map_words.say(subject, kind, view.layer, view.head)
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
    one = view.over == "one" or not choices.fits(heads.subject, heads.kind)
    key, shape = "text" if one else "text.together", heads.shape if one else (heads.shape[0], 1, *heads.shape[2:])
    last: reading.Reading | None = st.session_state.get(f"attention.{key}")
    pinned = last.pinned if last is not None and last.pinned is not None else None
    if pinned is None or pinned.side == "query":
        pinned = reading.Pin("query", view.query_of(heads.queries))
    wanted = reading.Reading(view.layer, view.head if one else 0, pinned)
    shown = reading.peek(key=key, selected=wanted)
    layer = 0 if reading.fits(shape, scored=one) else min(shown.layer, shape[0] - 1)
    payload = (
        attention_selector.packed(heads.subject, heads.kind, shape, view.without)
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
    name = choices.names_together(view.over)["head_name"].format(layer=found.layer) if not one else ""
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
            guarded()(_draw_effective_weights)(here)


def _draw_effective_weights(here: Heads) -> None:
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


# Heads as lines between the tokens: several heads of a layer; of a text too long for all of its lines a part.
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
