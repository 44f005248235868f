"""All stations for a sentence, and where each leads deeper."""

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import streamlit as st

from vizformer.analysis.attribution.station_numbers import unmasked
from vizformer.analysis.heads.maps import site_name
from vizformer.components import stations as component
from vizformer.components.stations import Box, Packed, Station
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import sitemap
from vizformer.web.frame.sitemap import Entry
from vizformer.web.link import state
from vizformer.web.tools.start.path import attention_stations, first_stations, last_stations
from vizformer.web.tools.start.path.knowledge_tests import forms
from vizformer.web.tools.start.path.model_drawing import boxes
from vizformer.web.tools.start.path.opened_boxes import attention
from vizformer.web.tools.start.path.sentence import Sentence
from vizformer.web.words.errors import guarded
from vizformer.web.words.figure_words import words
from vizformer.web.words.i18n import language, translate

MADE = (
    first_stations.machine,
    first_stations.tokens,
    first_stations.rows,
    first_stations.places,
    attention_stations.query,
    attention_stations.softmax,
    attention_stations.heads,
    attention_stations.mask,
    first_stations.turned,  # of queries and keys, which are known by now
    last_stations.layer,
    last_stations.cross,
    last_stations.writing,
    last_stations.loss,
)


def all_stations(about: Sentence) -> tuple[Station, ...]:
    """The stations that this model has, in the reader's language: a model without an encoder does not look at one."""
    made = (make(about) for make in MADE)
    return tuple(replace(one, deeper=translate(leads_to(one.name, about)[0].title)) for one in made if one is not None)


def drawing(about: Sentence, stations: Collection[str]) -> list[Box]:
    """The drawing of the model, with what is inside the boxes of the heads that the stations follow."""
    look, crossed = about.look, about.found.cross
    inside = {"attention": attention(about, site_name(about.stack, look.layer), look.head, look.query)}
    if crossed is not None:
        inside["cross"] = attention(about, site_name("cross", crossed.layer), crossed.head, crossed.query)
        seen = unmasked(about.subject.trace, len(about.written))
        inside["mask"] = attention(about, site_name("decoder", seen.layer), seen.head, len(about.written) // 2)
    return boxes(about.subject.config, stations, inside)


@cached
def packed(subject: Subject, code: str) -> Packed:
    """All of it as it is sent, in the language `code`, which is the reader's."""
    about = Sentence(subject)
    made = all_stations(about)
    drawn = drawing(about, {station.name for station in made})
    return component.pack(made, drawn, text=repr(subject), tests=forms(), words=words(component.ENGLISH))


def leads_to(station: str, about: Sentence) -> tuple[Entry, dict[str, Any]]:
    """The page that takes a station further, and what it is to show: the same token, layer and head."""
    look, kind = about.look, about.stack
    looked: dict[str, Any] = {"kind": kind, "layer": look.layer, "head": look.head, "query": look.query}
    crossed = about.found.cross
    if crossed is not None and station == "cross":
        looked = {"kind": "cross", "layer": crossed.layer, "head": crossed.head, "query": crossed.query}
    pages: dict[str, tuple[Entry, dict[str, Any]]] = {
        "machine": (sitemap.MAP, {"part": ""}),
        "tokens": (sitemap.TOKENS, {"part": "pieces"}),
        "rows": (sitemap.TOKENS, {"part": "lookup"}),
        "places": (sitemap.POSITIONS, {"part": ""}),
        "query": (sitemap.QKV, {"part": "arithmetic", "step": 0, **looked}),
        "softmax": (sitemap.QKV, {"part": "scaling", **looked}),
        "heads": (sitemap.HEADS, {"part": "", **looked}),
        "mask": (sitemap.MASKS, {"part": ""}),
        "layer": (sitemap.BLOCK, {"part": "stream", **looked}),
        "cross": (sitemap.CROSS, {"part": "memory", **looked}),
        "writing": (sitemap.DECODING, {"part": "ways"}),
        "loss": (sitemap.TRAINING, {"part": "loss"}),
    }
    return pages[station]


@st.fragment
@guarded()
def draw_path(subject: Subject) -> None:
    """The component, and what follows from what the reader does in it."""
    content, at = packed(subject, language()), state.view().part
    at = at if at in content.names else ""  # a part of a lesson, from which the reader comes back
    told = component.mount(content, at=at, key="path")
    if told is None:
        return
    name, deeper = told
    if deeper:
        entry, changes = leads_to(name, Sentence(subject))
        state.update(**changes)
        st.switch_page(entry.file)
    state.update(part=name)
