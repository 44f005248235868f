"""The drawing of the model beside a part of a lesson: its place is lit, its neighbours lead on, a lit box opens."""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import streamlit as st

from vizformer.analysis.attribution.forward_scenes import SHOWN
from vizformer.analysis.attribution.station_numbers import unmasked
from vizformer.analysis.heads.maps import site_name
from vizformer.components import stations as component
from vizformer.components.stations import Grid, Inside
from vizformer.config import ModelConfig
from vizformer.explain import Step
from vizformer.web.catalogue import model_cache, subject_cache
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import sitemap
from vizformer.web.frame.sitemap import Entry
from vizformer.web.link import state
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.widgets.laboratories import laboratory
from vizformer.web.widgets.whole_model.model_drawing import boxes
from vizformer.web.widgets.whole_model.sentence import Sentence, words_of
from vizformer.web.words import labels
from vizformer.web.words.i18n import _, language, translate

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
_SHOWN = ("q", "k", "v", "dots", "scores", "mask", "weights", "z", "head_out")
_NETWORK = (
    *("self.add", "self.mean", "self.variance", "self.norm"),
    *("feedforward.norm", "feedforward.hidden", "feedforward.gate", "feedforward.activation"),
    *("feedforward.gated", "feedforward.narrow", "feedforward.add", "feedforward.mean", "feedforward.variance"),
)
_CELLS, _ROWS = 8, 8  # numbers of a row, and rows, that are shown
_PRODUCTS = 2  # of a sum that are written out


def inside(about: Sentence, wanted: Collection[str]) -> dict[str, list[Inside]]:
    """What is inside the boxes of the heads that the stations follow, and of the network: of those that are wanted."""
    look, crossed, found = about.look, about.found.cross, dict[str, list[Inside]]()
    if "attention" in wanted:
        found["attention"] = attention(about, site_name(about.stack, look.layer), look.head, look.query)
    if "layer" in wanted:
        found["layer"] = network(about, look.layer)
    if crossed is not None and "cross" in wanted:
        found["cross"] = attention(about, site_name("cross", crossed.layer), crossed.head, crossed.query)
    if about.written and "mask" in wanted:
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
def _drawing(model: ModelRef, code: str, here: str) -> str:
    """The drawing as it is sent, in the reader's language `code`; what is lit at the station `here` can be opened."""
    config = model_cache.options(model)
    found = {*PLACES.values()} - ({"places"} if config.positions == "none" else set())
    said = {"model": _("The model: press a part to go to its lesson"), "close": _("Back to the model")}
    made = [replace(box, opens=box.opens and here in box.lit_at) for box in boxes(config, found, {})]
    return component.pack_model(made, words=said)


@cached
def _inside_text(subject: Subject, code: str, here: str) -> str:
    """What is in the box that is lit at the station `here`, as it is sent, in the language `code`."""
    about = Sentence(subject)
    [steps] = inside(about, _boxes(about, here)).values()
    return component.pack_inside(steps)


@laboratory
def draw_beside(subject: Subject, lesson: str, part: str) -> None:
    if f"{lesson}/{part}" in _DRAWN:
        return
    if not subject.checkpoint.is_own:  # the laboratory says why
        return
    here, code = PLACES.get(f"{lesson}/{part}", PLACES[lesson]), language()
    station = component.mount_model(
        _drawing(subject.model, code, here),
        here=here,
        of=hashlib.sha256(repr((subject, code, here)).encode()).hexdigest()[:16],
        inside=lambda: _inside_text(subject, code, here),
        key="whole-model",
    )
    if station is not None:
        entry, changes = leads_to(station, Sentence(subject))
        state.update(**changes)
        if entry.url == lesson:
            st.rerun()
        st.switch_page(entry.file)


def attention(about: Sentence, site: str, head: int, query: int) -> list[Inside]:
    """One head and one query: queries, keys, values, scores, weights, what the head finds and hands on."""
    kind = site.partition(".")[0] if not site.endswith("cross") else "cross"
    keys = labels.texts(about.subject.trace.tokens[labels.stacks(kind)[1]])
    steps = subject_cache.steps(about.subject, site, head, query)
    return [_inside(step, keys) for step in steps if step.key in _SHOWN]


def network(about: Sentence, layer: int) -> list[Inside]:
    """Add & norm, the network, and add & norm again, for the row that is followed."""
    steps, __ = subject_cache.layer(about.subject, about.stack, layer)
    shown = [step for step in steps if step.key in _NETWORK and len(step.result) == len(about.subject.tokens)]
    return [_inside(step, [], about.found.followed, about.token) for step in shown]


def _inside(step: Step, keys: Sequence[str], row: int = 0, name: str = "") -> Inside:
    """The step's result, cell by cell, and the sum behind each cell where it is one: of all keys, or of one row."""
    over_keys = step.axes[-1] == "keys"
    result = np.asarray(step.result, dtype=float)
    found = np.atleast_2d(result if not name else result[row])  # of a mean: a number for each row
    rows = found[:_ROWS, : SHOWN if over_keys else _CELLS]
    names = list(keys[: len(rows)]) if step.axes[0] == "keys" and not over_keys else [name]
    columns = list(keys[: rows.shape[1]]) if over_keys else [str(i) for i in range(rows.shape[1])]
    rows = np.where(np.isfinite(rows), rows, np.nan)
    tips = [[_sum(step, row + at, column) for column in range(rows.shape[1])] for at in range(len(rows))]
    grid = Grid("", names, columns, rows[: len(names)], signed=step.key != "weights", written=True, tips=tips)
    proof = words_of("inside")("proof", difference=f"{step.proof.difference:.0e}")
    return Inside(translate(step.title), translate(step.text), grid, proof if step.proof.holds else "")


def _sum(step: Step, row: int, column: int) -> str:
    """The products behind a cell: a x b + c x d + ... = sum; empty where it is no sum of products."""
    behind = step.contraction
    if behind is None or row >= len(behind.left):
        return ""
    pairs = zip(behind.left[row, :_PRODUCTS], behind.right[:_PRODUCTS, column], strict=True)
    first = " + ".join(f"{_number(a)} × {_number(b)}" for a, b in pairs)
    total = float(behind.products(row, column).sum()) + (0.0 if behind.add is None else float(behind.add[column]))
    return words_of("inside")("sum", first=first, count=behind.left.shape[1], total=f"{total:.3f}".replace("-", "−"))


def _number(value: float) -> str:
    return f"{value:.3f}".replace("-", "−") if value >= 0 else f"(−{-value:.3f})"
