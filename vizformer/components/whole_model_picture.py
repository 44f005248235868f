"""The whole model as one picture of one forward: lanes of tokens, rows and maps of heads; a reading glass; the next token.

    press = pressed("picture")                     # what was pressed just now that a page has to answer, or None
    mount(Picture(...), key="picture")
    to_html(Picture(...))                          # the same, as a file

Heads, queries and keys are chosen, and weights proved, in the browser: the server hears of a token that is to be written,
of layers and heads that are not drawn, and of ways to other pages.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vizformer.components import _mount
from vizformer.components.packing import count, quantise
from vizformer.word_tables import words_of

ENGLISH: Mapping[str, str] = words_of(__file__)

ENTRY = "whole_model_picture"
_COMPONENT = _mount.Component(ENTRY, ENGLISH)

DOES = ("opened", "write", "own", "layer", "all", "heads", "embedding", "positions", "norm", "feedforward", "output")
"""The requests of a press to the page: to write a token, to let the model write again, to draw a layer or all its heads, or
to show more elsewhere."""


@dataclass(frozen=True)
class Maps:
    """Some heads of one layer.

    `kind`: "encoder", "decoder" or "cross".
    `plain`: whether softmax sees q . k * `scale` alone.
    `weights`, `scores`: [heads, queries, keys]; `reasons` [queries, keys], 0 where a cell is visible.
    `totals`: log sum exp of the scores of a row [heads, queries].
    `rests`: where each head rests: a key (-1: each token on itself), and its share of the weights; none: nothing is said.
    """

    kind: str
    layer: int
    heads: Sequence[int]
    n_heads: int
    scale: float
    plain: bool
    weights: NDArray[np.floating] = field(repr=False)
    scores: NDArray[np.floating] = field(repr=False)
    reasons: NDArray[np.integer] = field(repr=False)
    totals: NDArray[np.floating] = field(repr=False)
    rests: Sequence[tuple[int, float] | None] = ()


@dataclass(frozen=True)
class Lane:
    """A stack: its tokens (of `count`), the rows that enter it [tokens, cells], its layers (of `layers`).

    `glosses`: what each token means in the reader's language; empty where nothing is said.
    """

    stack: str
    tokens: Sequence[str]
    count: int
    layers: int
    embedded: NDArray[np.floating] = field(repr=False)
    added: NDArray[np.floating] | None = field(repr=False)
    maps: Sequence[Maps] = field(repr=False)
    glosses: Sequence[str] = ()


@dataclass(frozen=True)
class Candidate:
    text: str
    id: int
    probability: float
    special: bool = False


@dataclass(frozen=True)
class Picture:
    """Everything that is drawn.

    `candidates`: of each row of the last lane; `written`: what each row but the first of the last lane has written, `own`
        whether the model chose it.
    `look`: among all maps of all lanes the one that is enlarged at first, head, query and key.
    `reports`: whether a page hears which box was opened, or which head was chosen.
    `addresses`: by kind, where a browser asks for queries and keys (`payload.HeadsPayload.address`).
    `positions`: how the model is told of places; `norm` and `norm_order` as in its options.
    """

    lanes: Sequence[Lane]
    candidates: Sequence[Sequence[Candidate]]
    written: Sequence[str]
    look: tuple[int, int, int, int]
    name: str
    positions: str = ""
    norm: str = "layer_norm"
    norm_order: str = "post"
    own: bool = True
    reports: bool = False
    addresses: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.lanes:
            raise ValueError("a model has a lane at least")
        sizes = {lane.stack: len(lane.tokens) for lane in self.lanes}
        for lane in self.lanes:
            for rows in (lane.embedded, lane.added):
                if rows is not None and (rows.shape[0] != len(lane.tokens) or rows.shape != lane.embedded.shape):
                    raise ValueError(f"rows of shape {rows.shape} are not those of {len(lane.tokens)} tokens")
            for one in lane.maps:
                keys = sizes["encoder"] if one.kind == "cross" else len(lane.tokens)
                shape = (len(one.heads), len(lane.tokens), keys)
                if not one.weights.shape == one.scores.shape == shape or one.reasons.shape != shape[1:]:
                    raise ValueError(f"maps of shape {one.weights.shape} do not fit {shape} (heads, queries, keys)")
        every = [one for lane in self.lanes for one in lane.maps]
        at, *cell = self.look
        if not 0 <= at < len(every) or any(not 0 <= i < n for i, n in zip(cell, every[at].weights.shape, strict=True)):
            raise ValueError(f"{self.look} is no map, head, query and key of this picture")


@dataclass(frozen=True)
class Press:
    """A press that the page has to answer: one of `DOES`, with kind, layer, head, query; or row and token id to write.

    `box`: which was opened, one of the rest of `DOES`; "" for a head.
    """

    does: str
    kind: str = ""
    layer: int = 0
    head: int = 0
    query: int = 0
    row: int = 0
    token: int = 0
    box: str = ""


def mount(picture: Picture, *, key: str) -> None:
    """Shows the picture on a Streamlit page."""
    data, columns = content(picture)
    _COMPONENT.mount(data, columns, key=key)


def pressed(key: str) -> Press | None:
    """The last press that the page has to answer; it is returned once, then None."""
    return _pressed(_mount.news(key))


def to_html(picture: Picture, *, title: str = "The whole model") -> _mount.Html:
    """Returns the picture as one HTML file that works without a server; links to other pages are left out."""
    data, columns = content(picture)
    return _COMPONENT.page(data, columns, title=title)


def _pressed(report: Mapping[str, Any]) -> Press | None:
    """Reads a browser's report; None where it is not valid."""
    if report.get("does") not in DOES or report.get("kind", "") not in ("", "encoder", "decoder", "cross"):
        return None
    numbers = {name: count(report.get(name)) or 0 for name in ("layer", "head", "query", "row", "token")}
    box = report.get("box", "") if report.get("box") in DOES else ""
    return Press(report["does"], report.get("kind", ""), **numbers, box=box)


def content(picture: Picture) -> tuple[dict[str, Any], dict[str, _mount.Column]]:
    """What the script is sent, and its columns of numbers."""
    every = [one for lane in picture.lanes for one in lane.maps]
    strips = [rows for lane in picture.lanes for rows in (lane.embedded, lane.added) if rows is not None]
    columns: dict[str, _mount.Column] = {
        "strips": np.concatenate([_shades(rows).ravel() for rows in strips]),
        "weights": np.concatenate([quantise(one.weights).ravel() for one in every]),
        "scores": np.concatenate([np.asarray(one.scores, np.float32).ravel() for one in every]),
        "reasons": np.concatenate([np.asarray(one.reasons, np.uint8).ravel() for one in every]),
        "totals": np.concatenate([np.asarray(one.totals, np.float32).ravel() for one in every]),
    }
    data: dict[str, Any] = {
        "lanes": [
            {
                "stack": lane.stack,
                "tokens": list(lane.tokens),
                "glosses": list(lane.glosses),
                "count": lane.count,
                "layers": lane.layers,
                "cells": int(lane.embedded.shape[1]),
                "added": lane.added is not None,
                "maps": [
                    {"kind": m.kind, "layer": m.layer, "heads": list(m.heads), "n_heads": m.n_heads}
                    | {"scale": m.scale, "plain": m.plain, "rests": list(m.rests) or [None] * len(m.heads)}
                    for m in lane.maps
                ],
            }
            for lane in picture.lanes
        ],
        "candidates": [[[c.text, c.id, c.probability, c.special] for c in row] for row in picture.candidates],
        "written": list(picture.written),
        "own": picture.own,
        "reports": picture.reports,
        "look": list(picture.look),
        "score": float(every[picture.look[0]].scores[picture.look[1:]]),  # what alone a cover has of the scores
        "positions": picture.positions,
        "norm": picture.norm,
        "norm_order": picture.norm_order,
        "addresses": dict(picture.addresses),
        "made": picture.name,
    }
    return data, columns


def _shades(rows: NDArray[np.floating]) -> NDArray[np.uint8]:
    """127 is 0, 0 and 254 the largest size of all."""
    finite = np.nan_to_num(np.asarray(rows, np.float32), posinf=0, neginf=0)
    most = float(np.abs(finite).max()) or 1.0
    shades: NDArray[np.uint8] = np.rint(127 + 127 * finite / most).astype(np.uint8)
    return shades
