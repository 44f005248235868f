"""All heads of one kind of attention: one of them as a large map, or several as lines."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import streamlit as st

from vizformer.components import attention, lines, reading
from vizformer.web.catalogue import head_pictures, subject_cache
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link import line_settings, state
from vizformer.web.link.line_settings import LineSettings
from vizformer.web.link.view import written_query
from vizformer.web.tools.attention import aids, line_part, pair, put_together
from vizformer.web.widgets import packed_heads, row_names, taken_heads
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.widgets.running_text import running_text
from vizformer.web.widgets.take_away import take_away
from vizformer.web.words import labels
from vizformer.web.words.figure_words import words
from vizformer.web.words.i18n import _

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vizformer.analysis import Kind
    from vizformer.components.attention import ByWord
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
        if state.view().level == "words" and state.view().picture == "map":
            return labels.texts(self.queries)  # a word of several rows has no one token that it chooses
        return row_names.queries(self.subject, self.kind)

    @property
    def by_word(self) -> "ByWord | None":
        """The words of queries and keys, where the reader wants words."""
        if state.view().level != "words":
            return None
        return [token.word for token in self.queries], [token.word for token in self.keys]

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
    state.fit(layer=n_layers, head=config.n_heads, query=len(queries), key=len(keys))
    shape = (n_layers, config.n_heads, len(queries), len(keys))
    aids.choose(subject, kind)
    here = Heads(subject, kind, shape, queries, keys)
    if state.view().picture == "lines":
        if state.view().over != "one" and aids.fits(subject, kind):
            as_lines_together(here)
        else:
            as_lines(here)
    elif state.view().picture == "text":
        as_text(here)
    elif state.view().over != "one" and aids.fits(subject, kind):
        as_one_map(here)
    else:
        as_map(here)
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
    wanted = attention.Selection(
        view.layer, view.head, view.query_of(heads.queries), view.key, view.numbers, view.order
    )
    payload = packed_heads.packed(heads.subject, heads.kind, heads.shape, view.without)
    shown_as: dict[str, Any] = {
        "query_tokens": heads.query_tokens,
        "key_tokens": heads.key_tokens,
        "by_word": heads.by_word,
        "words": words(attention.ENGLISH),
    }
    selection = attention.mount(payload, selected=wanted, key="heads", **shown_as)
    query = written_query(selection.query, heads.queries)
    looked = {"layer": selection.layer, "head": selection.head, "query": query, "key": selection.key}
    state.update(**looked, numbers=selection.view, order=selection.order)
    take_away(
        taken_heads.one_head(
            heads.subject,
            heads.kind,
            selection.layer,
            selection.head,
            heads.query_tokens,
            heads.key_tokens,
            scores=selection.view == "scores",
            page=lambda: attention.to_html(
                taken_heads.in_a_file(
                    heads.subject, heads.kind, heads.shape, selection.layer, selection.head, view.without
                ),
                selected=selection,
                **shown_as,
            ),
        ),
        *taken_heads.all_heads(heads.subject, heads.kind, heads.shape),
        key="heads",
    )
    if selection.key is not None:
        pair.terms(heads.subject, heads.kind, selection.layer, selection.head, selection.query, selection.key)


def as_one_map(heads: Heads) -> None:
    """All heads of a layer together, a map for each layer."""
    view = state.view()
    last = st.session_state.get("attention.together", attention.Selection())
    wanted = replace(last, layer=view.layer, query=view.query_of(heads.queries))
    shape = (heads.shape[0], 1, *heads.shape[2:])
    looked_at = min(attention.peek(key="heads.together", selected=wanted).layer, shape[0] - 1)
    layer = 0 if attention.fits(shape, scored=False) else looked_at
    payload = put_together.payload((heads.subject, heads.kind, view.over, view.without, layer), heads.shape)
    if payload is None:  # the map is off the page meanwhile, and what was chosen in it with it
        state.update(layer=looked_at)
        return
    names = heads.query_tokens
    said = words(attention.ENGLISH) | aids.names_together(view.over)
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
        taken_heads.together(
            heads.subject,
            payload,
            heads.kind,
            selection.layer,
            said["head_name"],
            names,
            heads.key_tokens,
            lambda: attention.to_html(payload, selected=selection, **shown_as),
        ),
        key="heads.together",
    )


def as_text(heads: Heads) -> None:
    """The text itself, coloured by one head, or by all heads of a layer together."""
    view, running = state.view(), [running_text(heads.subject, stack) for stack in labels.stacks(heads.kind)]
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
        else put_together.payload((heads.subject, heads.kind, view.over, view.without, layer), heads.shape)
    )
    if payload is None:
        state.update(layer=min(shown.layer, shape[0] - 1))
        return
    shown_as: dict[str, Any] = {"query_tokens": running[0], "key_tokens": running[1], "words": words(reading.ENGLISH)}
    found = reading.mount(payload, selected=wanted, key=key, **shown_as)
    st.session_state[f"attention.{key}"] = found
    query = view.query
    if found.pinned is not None and found.pinned.side == "query":
        query = written_query(found.pinned.index, heads.queries)
    state.update(layer=found.layer, head=found.head if one else view.head, query=query)
    pin = found.pinned or pinned
    name = aids.names_together(view.over)["head_name"].format(layer=found.layer) if not one else ""
    take_away(
        taken_heads.text_of(
            (lambda: taken_heads.map_and_reasons(heads.subject, heads.kind, found.layer, found.head, view.without))
            if one
            else (lambda: payload.map_of(found.layer, 0)),
            pin.index,
            pin.side,
            running,
            name or taken_heads.head_name(heads.kind, found.layer, found.head),
            lambda: reading.to_html(
                taken_heads.in_a_file(heads.subject, heads.kind, shape, found.layer, found.head, view.without)
                if one
                else payload,
                selected=found,
                **shown_as,
            ),
            (heads.subject, heads.kind, view.over if not one else "one", found.layer, found.head, view.without),
        ),
        key=key,
    )


def as_lines(heads: Heads) -> None:
    part = line_part.choose(heads.shape, state.view().query_of(heads.queries))
    wanted = wanted_lines(part)
    layer = min(lines.peek(key="lines", selected=wanted).layer, heads.shape[0] - 1)
    if lines.fits((1, *heads.shape[1:]), scored=False):
        held = None if lines.fits(heads.shape, scored=False) else layer
        payload = subject_cache.lines(heads.subject, heads.kind, held, state.view().without)
    else:
        payload = line_part.packed(heads.subject, heads.kind, layer, part, state.view().without)
    names: dict[str, Any] = {
        "query_tokens": heads.query_tokens[part.queries.start : part.queries.stop],
        "key_tokens": heads.key_tokens[part.keys.start : part.keys.stop],
    }
    selection = lines.mount(payload, selected=wanted, words=words(lines.ENGLISH), key="lines", **names)
    view, shown, pinned = state.view(), selection.heads or (), part.in_text(selection.pinned)
    head = view.head if view.head in shown else shown[0]
    query = pinned.index if pinned is not None and pinned.side == "query" else view.query
    drawn = drawn_lines(replace(selection, pinned=pinned), None if shown == (head,) else shown, query, part)
    state.update(layer=selection.layer, head=head, query=query, lines=line_settings.write(drawn))
    said = words(lines.ENGLISH)
    take_away(
        taken_heads.lines(
            heads.subject,
            heads.kind,
            selection,
            (part.queries, part.keys),
            **names,
            page=lambda: lines.to_html(payload, selected=selection, words=said, **names),
        ),
        key="lines",
    )


def as_lines_together(heads: Heads) -> None:
    """The heads of a layer as one: a line for each weight of their mean, their largest weights, or the rollout."""
    view, shape = state.view(), (heads.shape[0], 1, *heads.shape[2:])
    if not lines.fits((1, *shape[1:]), scored=False):
        st.info(_("The text is too long for lines. The map shows every head of it."))
        return
    wanted = replace(wanted_lines(), heads=(0,))
    layer = min(lines.peek(key="lines.together", selected=wanted).layer, shape[0] - 1)
    held = None if lines.fits(shape, scored=False) else layer
    payload = head_pictures.lines_together(heads.subject, heads.kind, view.over, view.without, held)
    said = words(lines.ENGLISH) | {"layer": aids.names_together(view.over)["head_name"]}
    names: dict[str, Any] = {"query_tokens": heads.query_tokens, "key_tokens": heads.key_tokens}
    selection = lines.mount(payload, selected=wanted, words=said, key="lines.together", **names)
    query = selection.pinned.index if selection.pinned is not None and selection.pinned.side == "query" else view.query
    drawn = drawn_lines(selection, line_settings.read(view.lines).heads, query)
    state.update(layer=selection.layer, query=query, lines=line_settings.write(drawn))
    take_away(
        taken_heads.lines_together(
            payload,
            heads.kind,
            selection,
            said["layer"],
            **names,
            page=lambda: lines.to_html(payload, selected=selection, words=said, **names),
        ),
        key="lines.together",
    )


def drawn_lines(
    selection: lines.LineSelection,
    heads: tuple[int, ...] | None,
    query: int | None,
    part: line_part.Part | None = None,
) -> LineSettings:
    """What the link says of lines, beside layer, head and query.

    Args:
        selection: with the token that is kept by its number in the text.
        heads: that are shown, where they are not the one of the view.
        query: of the view.
        part: the part of the text that is shown; None for all of it.
    """
    pinned, before = selection.pinned, line_settings.read(state.view().lines)
    if pinned is None and part is not None and before.key is not None and before.key not in part.keys:
        pinned = lines.Pin("key", before.key)  # it is kept, and not in sight
    elsewhere = part is not None and query is not None and query not in part.queries
    return LineSettings(
        start=before.start,
        heads=heads,
        threshold=None if selection.threshold == lines.THRESHOLD else selection.threshold,
        key=pinned.index if pinned is not None and pinned.side == "key" else None,
        let_go=before.let_go if pinned is None and elsewhere else pinned is None and query is not None,
    )


def wanted_lines(part: line_part.Part | None = None) -> lines.LineSelection:
    """The lines that the view asks for; of a part, the token that is kept by its place there."""
    view = state.view()
    said = line_settings.read(view.lines)
    pinned = None if view.query is None or said.let_go else lines.Pin("query", view.query)
    pinned = pinned if said.key is None else lines.Pin("key", said.key)
    return lines.LineSelection(
        view.layer,
        said.heads if said.heads and view.head in said.heads else (view.head,),
        pinned if part is None else part.inside(pinned),
        lines.THRESHOLD if said.threshold is None else said.threshold,
    )
