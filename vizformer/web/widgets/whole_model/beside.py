"""The drawing of the model beside a part of a lesson: its place is lit, its neighbours lead on, a lit box opens."""

from collections.abc import Collection, Mapping
from typing import Any

import streamlit as st

from vizformer.analysis.attribution.station_numbers import unmasked
from vizformer.analysis.heads.maps import site_name
from vizformer.components import stations as component
from vizformer.components.stations import Inside
from vizformer.config import ModelConfig
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import sitemap
from vizformer.web.frame.sitemap import Entry
from vizformer.web.link import state
from vizformer.web.widgets.laboratories import laboratory
from vizformer.web.widgets.whole_model.model_drawing import boxes
from vizformer.web.widgets.whole_model.opened_boxes import attention, network
from vizformer.web.widgets.whole_model.sentence import Sentence
from vizformer.web.words.i18n import _, language

PLACES: Mapping[str, str] = {
    **{"tokens": "rows", "tokens/pieces": "tokens", "tokens/merges": "tokens", "tokens/signals": "tokens"},
    **{"positions": "places", "qkv": "query", "qkv/scale": "softmax", "heads": "heads", "masks": "mask"},
    **{"block": "layer", "block/count": "", "cross": "cross", "decoding": "writing", "decoding/cache": "mask"},
    **{"training": "", "training/loss": "loss", "training/smoothing": "loss", "training/sharing": "rows"},
    **{"map": "", "map/drawing": "machine", "costs": "", "costs/flash": "softmax", "costs/linear": "softmax"},
    **{"costs/sparse": "softmax", "costs/measured": "softmax", "errors": "", "errors/dropout": "layer"},
    **{"errors/scale": "softmax", "errors/waves": "places", "errors/total": "softmax", "errors/after": "mask"},
    **{"errors/cache": "mask", "errors/embedding": "rows", "errors/join": "heads"},
    **{"mixers": "softmax", "mixers/latent": "query", "mixers/memory": "mask", "mixers/experts": "layer"},
}
"""Lesson, or lesson/part -> the station whose boxes are lit beside it; empty: it is about no box more than others."""


def inside(
    about: Sentence, wanted: Collection[str] = ("attention", "mask", "cross", "layer")
) -> dict[str, list[Inside]]:
    """What is inside the boxes of the heads that the stations follow, and of the network: of those that are wanted."""
    look, crossed, found = about.look, about.found.cross, dict[str, list[Inside]]()
    if "attention" in wanted:
        found["attention"] = attention(about, site_name(about.stack, look.layer), look.head, look.query)
    if "layer" in wanted:
        found["layer"] = network(about, look.layer)
    if crossed is not None and "cross" in wanted:
        found["cross"] = attention(about, site_name("cross", crossed.layer), crossed.head, crossed.query)
    if crossed is not None and "mask" in wanted:
        seen = unmasked(about.subject.trace, len(about.written))
        found["mask"] = attention(about, site_name("decoder", seen.layer), seen.head, len(about.written) // 2)
    return found


def positions_part(config: ModelConfig) -> str:
    """The part of Positions that is about what this model does: waves, or one of the other schemes."""
    return "waves" if config.positions == "sinusoidal" else "options"


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
        "places": (sitemap.POSITIONS, {"part": positions_part(about.subject.config)}),
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


def _boxes(about: Sentence, station: str) -> tuple[str, ...]:
    """The boxes that open at a station: of a model with one stack, its attention is the masked one."""
    if station in ("query", "softmax", "heads") or (station == "mask" and about.stack == "decoder"):
        return ("attention",)
    return (station,)


@cached
def _packed(subject: Subject, code: str, here: str) -> str:
    """The drawing as it is sent, in the reader's language `code`; what is lit at the station `here` can be opened."""
    about, config = Sentence(subject), subject.config
    found = {*PLACES.values()} - ({"places"} if config.positions == "none" else set())
    said = {"model": _("The model: press a part to go to its lesson"), "close": _("Back to the model")}
    return component.pack([], boxes(config, found, inside(about, _boxes(about, here))), words=said).content


@laboratory
def draw_beside(subject: Subject, lesson: str, part: str) -> None:
    here = PLACES.get(f"{lesson}/{part}", PLACES[lesson])
    content = _packed(subject, language(), here)
    station = component.mount_model(content, here=here, key="whole-model")
    if station is not None:
        entry, changes = leads_to(station, Sentence(subject))
        state.update(**changes)
        if entry.url == lesson:
            st.rerun()
        st.switch_page(entry.file)
