"""One pass of the typed sentence through the model, scene by scene; each leads to what takes it apart."""

from typing import Any

import streamlit as st

from vizformer.analysis import Kind
from vizformer.components import walkthrough
from vizformer.components.walkthrough import SceneKind
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import sitemap
from vizformer.web.frame.sitemap import Entry
from vizformer.web.link import state
from vizformer.web.tools.start import computations, description, scenes
from vizformer.web.widgets import head_downloads, row_names
from vizformer.web.widgets.downloads import Picture, caption, take_away
from vizformer.web.widgets.whole_model.beside import positions_part
from vizformer.web.words import labels
from vizformer.web.words.errors import guarded


@st.fragment
@guarded()
def draw_film(subject: Subject) -> None:
    walk = scenes.walk(subject)
    followed = walkthrough.mount(walk, key="walk")
    take_away(
        Picture("walk", caption(), page=lambda: walkthrough.to_html(walk), told=lambda: description.told(walk)),
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
