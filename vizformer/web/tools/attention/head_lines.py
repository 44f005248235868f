"""Heads as lines between the tokens: several heads of a layer."""

from dataclasses import replace
from typing import Any

from vizformer.components import lines
from vizformer.web.catalogue import subject_cache
from vizformer.web.link import line_settings, state
from vizformer.web.link.line_settings import LineSettings
from vizformer.web.tools.attention import line_part
from vizformer.web.tools.attention.heads_of_kind import Heads
from vizformer.web.widgets import head_downloads
from vizformer.web.widgets.downloads import take_away


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
    selection: lines.LineSelection, heads: tuple[int, ...] | None, query: int | None, part: line_part.Part
) -> LineSettings:
    """What the link says of lines, beside layer, head and query."""
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


def wanted_lines(part: line_part.Part) -> lines.LineSelection:
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
