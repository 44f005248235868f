"""One pass of the typed sentence through the model, scene by scene; each leads to what takes it apart."""

from collections.abc import Iterator
from math import degrees
from typing import Any

import streamlit as st

from vizformer.analysis import Kind
from vizformer.components import walkthrough
from vizformer.components.walkthrough import Candidates, Lines, Scene, SceneKind, Strips, Walk
from vizformer.figures.tables import Cell, Table
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import sitemap
from vizformer.web.frame.sitemap import Entry
from vizformer.web.link import state
from vizformer.web.tools.start import computations, scenes
from vizformer.web.widgets import head_downloads, row_names
from vizformer.web.widgets.downloads import Picture, caption, take_away
from vizformer.web.widgets.whole_model.beside import positions_part
from vizformer.web.words import labels
from vizformer.web.words.errors import guarded
from vizformer.web.words.i18n import _, language

Numbers = Iterator[tuple[str, str | int, Cell]]  # of a scene: the row, the place in it, the number


@st.fragment
@guarded()
def draw_film(subject: Subject) -> None:
    walk = scenes.walk(subject)
    followed = walkthrough.mount(walk, key="walk")
    take_away(
        Picture("walk", caption(), page=lambda: walkthrough.to_html(walk), told=lambda: told(walk)),
        _head(subject),
        key="walk",
    )
    if followed is not None:
        entry, changes = leads_to(followed, subject)
        state.update(**changes)
        st.switch_page(entry.file)


def _head(subject: Subject) -> Picture:
    """The map of the head that the scene Attention follows."""
    kind, look = _kind(subject), computations.numbers(subject).look
    keys = labels.texts(subject.trace.tokens[labels.stacks(kind)[1]])
    return head_downloads.one_head(subject, kind, look.layer, look.head, row_names.queries(subject, kind), keys)


def _kind(subject: Subject) -> Kind:
    return "decoder" if subject.config.architecture == "decoder-only" else "encoder"


def leads_to(scene: SceneKind, subject: Subject) -> tuple[Entry, dict[str, Any]]:
    """The page that takes a scene apart, and what it is to show: the same token, layer and head."""
    found = computations.numbers(subject)
    look, kind = found.look, _kind(subject)
    if scene == "cross" and found.cross is not None:
        look, kind = found.cross, "cross"
    looked = {"kind": kind, "layer": look.layer, "head": look.head, "query": look.query}
    if scene in ("characters", "tokens", "vectors"):
        return sitemap.TOKENS, {"part": "lookup" if scene == "vectors" else "pieces"}
    if scene in ("added", "turned", "biased", "unplaced"):
        return sitemap.POSITIONS, {"part": positions_part(subject.config)}
    if scene == "attention":
        return sitemap.QKV, {"part": "arithmetic", "step": 0, **looked}
    if scene == "cross":
        return sitemap.CROSS, {"part": "memory", **looked}
    if scene == "residual":
        return sitemap.BLOCK, {"part": "stream", **looked}
    if scene == "layers":
        return sitemap.MAP, {"part": ""}
    if subject.config.architecture == "encoder-only":
        return sitemap.BLANKS, {}
    return sitemap.DECODING, {"part": "ways" if scene == "next" else "shift"}


def told(walk: Walk) -> tuple[str, Table]:
    """The sentences of all scenes, and what they are drawn from.

    Of the layers it has length and direction only, so that a deep model has as short a table as a shallow one.
    """
    rows = [(scene.title, *numbers) for scene in walk.scenes for numbers in _numbers(walk, scene)]
    said = [scene.caption for scene in walk.scenes]
    said.append(_("The table follows “{token}”.", token=walk.tokens[walk.followed].text))
    columns = (_("scene"), _("row"), _("place in it"), _("value"))
    return ("" if language().startswith("zh") else " ").join(said), Table(columns, rows, len(rows))


def _numbers(walk: Walk, scene: Scene) -> Numbers:
    at = walk.followed
    token = walk.tokens[at].text
    if scene.kind == "characters":
        yield from (("", index, one) for index, one in enumerate(walk.characters))
    elif scene.kind == "tokens":
        yield from ((piece.text, index, piece.id) for index, piece in enumerate(walk.tokens))
    elif scene.kind == "vectors":
        yield from _strip(token, walk.embedded[at].tolist())
    elif scene.kind == "added" and walk.added is not None:
        yield from _strip(_("token"), walk.embedded[at].tolist())
        yield from _strip(_("position"), walk.added[at].tolist())
        yield from _strip(_("together"), walk.entering[at].tolist())
    elif scene.kind == "turned" and walk.angles is not None:
        yield from _strip(_("angle in degrees"), [degrees(angle) for angle in walk.angles[at].tolist()])
    elif scene.kind == "biased" and walk.bias is not None:
        yield from ((piece.text, i, float(walk.bias[i])) for i, piece in enumerate(walk.tokens))
    elif scene.kind == "attention":
        yield from _looks(walk.attention)
    elif scene.kind == "cross" and walk.cross is not None:
        yield from _looks(walk.cross)
    elif scene.kind == "residual":
        for name, cells in zip(walk.sublayers.names, walk.sublayers.cells.tolist(), strict=True):
            yield from _strip(name, cells)
        yield from _lengths(walk.sublayers)
    elif scene.kind == "layers":
        yield from _lengths(walk.layers)
    elif scene.kind == "next" and walk.next is not None:
        yield from _candidates(walk.next)
    elif scene.kind == "written" and walk.written is not None:
        yield from _candidates(walk.written)


def _strip(name: str, cells: list[float]) -> Numbers:
    return ((name, index, cell) for index, cell in enumerate(cells))


def _looks(lines: Lines) -> Numbers:
    """The weights of the row that is followed; a key that the mask blocks has none."""
    query = lines.queries[lines.query]
    for index, key in enumerate(lines.keys):
        if not lines.blocked[lines.query, index]:
            yield f"{query} → {key}", index, float(lines.weights[lines.query, index])
    if (elsewhere := float(lines.elsewhere[lines.query])) > 0:
        yield query, _("not drawn"), elsewhere


def _lengths(strips: Strips) -> Numbers:
    for index, (name, length) in enumerate(zip(strips.names, strips.lengths, strict=True)):
        yield name, _("length"), float(length)
        if strips.cosines:
            yield name, _("cosine with the start"), float(strips.cosines[index])


def _candidates(candidates: Candidates) -> Numbers:
    pairs = zip(candidates.names, candidates.probabilities, strict=True)
    return ((name, index, float(probability)) for index, (name, probability) in enumerate(pairs))
