"""The model in one line beside a part of a lesson and on the path: its place is lit, and opens; its neighbours lead on."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import streamlit as st

from vizformer.analysis import Kind, kinds
from vizformer.components import whole_model
from vizformer.components.whole_model import Box, Packed
from vizformer.components.whole_model_picture import ENGLISH
from vizformer.config import ModelConfig
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import sitemap
from vizformer.web.frame.sitemap import Entry
from vizformer.web.link import state
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.widgets.laboratories import laboratory
from vizformer.web.widgets.whole_model import picture
from vizformer.web.widgets.whole_model.sentence import Sentence
from vizformer.web.words.i18n import _, language, words

PLACES: Mapping[str, str] = {
    **{"tokens": "rows", "tokens/pieces": "tokens", "tokens/merges": "tokens"},
    **{"positions": "places", "qkv": "query", "qkv/scale": "softmax", "heads": "heads", "masks": "mask"},
    **{"block": "layer", "block/count": "", "cross": "cross", "decoding": "writing", "decoding/cache": "mask"},
    **{"training": "", "training/loss": "loss", "training/smoothing": "loss", "training/sharing": "rows"},
    **{"map": "", "costs": "", "costs/flash": "softmax", "costs/linear": "softmax"},
    **{"costs/sparse": "softmax", "mixers": "softmax", "mixers/latent": "query"},
}
"""Lesson, or lesson/part -> the station whose boxes are lit beside it; empty: it is about no box more than others."""
_DRAWN = ("map/drawing", "cross/three")  # the parts that show the whole model
_KEY, _OPEN = "whole-model", "whole-model.open"

_ATTENTION = ("query", "softmax", "heads")  # the stations of a head


def leads_to(station: str, about: Sentence) -> tuple[Entry, dict[str, Any]]:
    """The page that takes a station further, and what it is to show: the same token, layer and head."""
    look, kind = about.look, about.stack
    looked: dict[str, Any] = {"kind": kind, "layer": look.layer, "head": look.head, "query": look.query}
    crossed = about.found.cross
    if crossed is not None and station == "cross":
        looked = {"kind": "cross", "layer": crossed.layer, "head": crossed.head, "query": crossed.query}
    pages: dict[str, tuple[Entry, dict[str, Any]]] = {
        "machine": (sitemap.MAP, {"part": "drawing"}),
        "tokens": (sitemap.TOKENS, {"part": "pieces"}),
        "rows": (sitemap.TOKENS, {"part": "lookup"}),
        "places": (sitemap.POSITIONS, {"part": picture.positions_part(about.subject.config)}),
        "query": (sitemap.QKV, {"part": "arithmetic", "step": 0, **looked}),
        "softmax": (sitemap.QKV, {"part": "scale", **looked}),
        "heads": (sitemap.HEADS, {"part": "split", **looked}),
        "mask": (sitemap.MASKS, {"part": "kinds"}),
        "layer": (sitemap.BLOCK, {"part": "stream", **looked}),
        "cross": (sitemap.CROSS, {"part": "memory", **looked}),
        "writing": (sitemap.DECODING, {"part": "ways"}),
        "loss": (sitemap.TRAINING, {"part": "loss"}),
    }
    return pages[station]


@cached
def _line(model: ModelRef, code: str) -> Packed:
    """The line as it is sent, in the reader's language `code`."""
    config = model_cache.options(model)
    found = {*PLACES.values()} - ({"places"} if config.positions == "none" else set())
    words = {
        "model": _("The model: press a part to go to its lesson"),
        "open": _("{title}: show it in the whole model"),
    }
    return whole_model.pack(boxes(config, found), words=words)


def pressed(subject: Subject, here: str, *, key: str) -> str | None:
    """The station of a box of the line that was pressed, once; else None.

    A lit one, of the station `here`, opens the picture below the line, or closes it.
    """
    gone = whole_model.pressed(_line(subject.model, language()), key=key)
    if gone == "":
        st.session_state[_OPEN] = None if st.session_state.get(_OPEN) == here else here
    return gone or None


def draw_line(subject: Subject, here: str, *, key: str) -> None:
    """The model in one line, the boxes of the station `here` lit, and the picture where they were opened."""
    is_open = st.session_state.get(_OPEN) == here
    whole_model.mount(_line(subject.model, language()), here=here, is_open=is_open, key=key)
    if is_open:
        picture.draw_whole_model(subject, key=f"{key}-picture", kind=_kind(subject, here))


def _kind(subject: Subject, here: str) -> Kind | None:
    """The attention that a station is about; None of one about something else."""
    if here in ("query", "softmax", "heads"):
        return kinds(subject.trace)[0]
    others: dict[str, Kind] = {"mask": "decoder", "cross": "cross"}
    return others.get(here)


@laboratory
def draw_beside(subject: Subject, lesson: str, part: str) -> None:
    if f"{lesson}/{part}" in _DRAWN:
        return
    if not subject.checkpoint.is_own:  # the laboratory says why
        return
    here = PLACES.get(f"{lesson}/{part}", PLACES[lesson])
    station = pressed(subject, here, key=_KEY)
    draw_line(subject, here, key=_KEY)
    if station is not None:
        entry, changes = leads_to(station, Sentence(subject))
        state.update(**changes)
        if entry.url == lesson:
            st.rerun()
        st.switch_page(entry.file)


def boxes(config: ModelConfig, stations: Collection[str]) -> list[Box]:
    """The parts of a model in the order of the data, encoder before decoder; those alone that have a station.

    They are called as in the picture of the whole model, norms where this model has them.
    """
    found: list[Box] = []
    named = words(ENGLISH)
    alone = config.architecture != "encoder-decoder"
    if config.n_encoder_layers:
        heads = Box(named["self"], "query", _ATTENTION, f"× {config.n_encoder_layers}")
        found += [
            Box(named["lane_alone"], "tokens", ("machine", "tokens")),
            *_entering(named, shown=True),
            *_layer(named, config, [heads], shown=True),
        ]
    if config.n_decoder_layers:
        heads = Box(
            *(named["masked_self"], "mask", (*_ATTENTION, "mask") if alone else ("mask",)),
            f"× {config.n_decoder_layers}",
        )
        crossed = Box(named["cross"], "cross", ("cross",), _("K, V from the encoder"))
        reads = (
            Box(named["lane_alone"], "tokens", ("tokens", "machine"))
            if alone
            else Box(_("Outputs (shifted right)"), "writing", ("writing",), "⇒")
        )
        found += [
            reads,
            *_entering(named, shown=alone),
            *_layer(named, config, [heads] if alone else [heads, crossed], shown=alone),
        ]
    found.append(
        Box(_("Linear + softmax"), "writing" if "writing" in stations else "machine", ("machine", "writing", "loss"))
    )
    return [box for box in found if box.station in stations]


def _entering(named: Mapping[str, str], *, shown: bool) -> list[Box]:
    """Embedding and positional encoding of a stack; `shown`: whether it is the one that the stations follow."""
    return [
        Box(named["embedding"], "rows", ("rows",) if shown else ()),
        Box(named["positions"], "places", ("places",) if shown else ()),
    ]


def _layer(named: Mapping[str, str], config: ModelConfig, attentions: Sequence[Box], *, shown: bool) -> list[Box]:
    """A layer: its attentions and its feed-forward network, what is added and normalised between them."""
    norm, add, both = _("Norm"), _("Add"), named["norm"]
    first, between, last = {
        "post": ("", both, both),
        "pre": (norm, both, add),
        "none": ("", add, add),
    }[config.norm_order]
    lit = ("layer",) if shown else ()
    made = [Box(first, "layer", lit)]
    for attention in attentions:
        made += [attention, Box(between, "layer", lit)]
    return [box for box in (*made, Box(named["feedforward"], "layer", lit), Box(last, "layer", lit)) if box.title]
