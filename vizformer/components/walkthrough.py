"""The walk: one forward as a film of a minute, scene by scene, drawn from its own numbers.

    link = mount(Walk(...), key="walk")     # the scene whose link was followed just now, or None
    to_html(Walk(...))                      # the same, as a file

It plays, pauses, steps and is dragged in the browser; the server hears of nothing but a link that someone follows.
Where the reader's system asks for less motion, nothing moves by itself and nothing glides: scenes are shown whole.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from vizformer.components import _mount
from vizformer.word_tables import words_of

SceneKind = Literal[
    "characters",
    "tokens",
    "vectors",
    "added",  # positions: a row that is added,
    "turned",  # an angle by which queries and keys are turned,
    "biased",  # what is added to the scores,
    "unplaced",  # or nothing
    "attention",
    "residual",
    "layers",
    "cross",
    "next",
    "written",
]
KINDS: tuple[SceneKind, ...] = get_args(SceneKind)

ENGLISH: Mapping[str, str] = words_of(__file__)

_COMPONENT = _mount.Component("walkthrough", ENGLISH)


@dataclass(frozen=True)
class Scene:
    kind: SceneKind
    title: str
    caption: str
    link: str  # the words of a link to more about it; "" for none
    seconds: float


@dataclass(frozen=True)
class Piece:
    """A token: what it reads, its number, and the characters of the text that it covers, [start, end)."""

    text: str
    id: int
    start: int = 0
    end: int = 0
    special: bool = False


@dataclass(frozen=True)
class Strips:
    """Rows of numbers [m, cells], drawn as colours.

    `lengths`, `cosines`: of the whole rows; empty where they are not shown.
    """

    names: Sequence[str]
    cells: NDArray[np.floating] = field(repr=False)
    lengths: Sequence[float] = ()
    cosines: Sequence[float] = ()


@dataclass(frozen=True)
class Lines:
    """What queries look at.

    `query`, `key`: the line that is followed.
    `weights`, `blocked`: [queries, keys].
    `elsewhere`: what each query gives to keys that are not drawn [queries].
    """

    queries: Sequence[str]
    keys: Sequence[str]
    query: int
    key: int
    weights: NDArray[np.floating] = field(repr=False)
    blocked: NDArray[np.bool_] = field(repr=False)
    elsewhere: NDArray[np.floating] = field(repr=False)


@dataclass(frozen=True)
class Candidates:
    """Tokens with their probabilities, one of which is chosen (or none)."""

    names: Sequence[str]
    probabilities: Sequence[float]
    chosen: int | None = None


@dataclass(frozen=True)
class Walk:
    """Everything that is drawn, as far as it is drawn; a row for each token.

    `note`: said beside the scenes; what is not drawn, for instance.
    `embedded`, `added`, `entering`: [tokens, cells]; no `added` where nothing is added.
    `angles`: radians [tokens, pairs], where positions are told by turning; `bias` [tokens], where by the scores.
    `sublayers` of one layer and `layers` are of the token that is followed, which `attention` is of too.
    """

    scenes: Sequence[Scene]
    characters: Sequence[str]
    tokens: Sequence[Piece]
    followed: int
    note: str
    embedded: NDArray[np.floating] = field(repr=False)
    added: NDArray[np.floating] | None = field(repr=False)
    entering: NDArray[np.floating] = field(repr=False)
    angles: NDArray[np.floating] | None
    bias: NDArray[np.floating] | None
    attention: Lines
    sublayers: Strips
    layers: Strips
    cross: Lines | None
    next: Candidates | None
    written: Candidates | None
    name: str

    def __post_init__(self) -> None:
        n, cells = len(self.tokens), self.embedded.shape[1:]
        if not self.scenes or not 0 <= self.followed < n:
            raise ValueError(f"token {self.followed} of {n} cannot be followed through {len(self.scenes)} scenes")
        for name in ("embedded", "added", "entering"):
            rows = getattr(self, name)
            if rows is not None and rows.shape != (n, *cells):
                raise ValueError(f"{name} of shape {rows.shape} are not {n} rows of {cells} numbers")
        for strips in (self.sublayers, self.layers):
            if strips.cells.shape != (len(strips.names), *cells):
                raise ValueError(f"strips of shape {strips.cells.shape} are not {len(strips.names)} rows of {cells}")
        for lines in (self.attention, self.cross):
            expected = None if lines is None else (len(lines.queries), len(lines.keys))
            if lines is not None and not (lines.weights.shape == lines.blocked.shape == expected):
                raise ValueError(f"weights of shape {lines.weights.shape} do not fit {expected}")
        has = {
            "added": self.added,
            "turned": self.angles,
            "biased": self.bias,
            "cross": self.cross,
            "next": self.next,
            "written": self.written,
        }
        for scene in self.scenes:
            if has.get(scene.kind, self.tokens) is None:
                raise ValueError(f"there is nothing to draw in the scene {scene.kind!r}")


def mount(walk: Walk, *, key: str) -> SceneKind | None:
    """Shows the walk on a Streamlit page; the scene whose link was followed, once; else None."""
    import streamlit as st

    data, columns = _data(walk)
    _COMPONENT.mount(data, columns, key=key)
    heard = f"_heard of {key}"
    scene, seq = _followed(_mount.reported(key).get("selected"))
    if scene is None or seq == st.session_state.get(heard):
        return None
    st.session_state[heard] = seq
    return scene


def to_html(walk: Walk, *, title: str = "Walkthrough") -> _mount.Html:
    """The same walk as the text of one HTML file that works without a server; its links lead nowhere, and are left out."""
    data, columns = _data(walk)
    return _COMPONENT.page(data, columns, title=title)


def _followed(report: object) -> tuple[SceneKind | None, object]:
    """The scene that a browser reported, and when; (None, None) where it is anything else."""
    if not isinstance(report, Mapping) or not isinstance(report.get("seq"), int | float):
        return None, None
    return next((kind for kind in KINDS if kind == report.get("scene")), None), report["seq"]


def _data(walk: Walk) -> tuple[dict[str, Any], dict[str, _mount.Column]]:
    columns: dict[str, _mount.Column] = {
        "embedded": _floats(walk.embedded),
        "entering": _floats(walk.entering),
        "sublayer_cells": _floats(walk.sublayers.cells),
        "layer_cells": _floats(walk.layers.cells),
    }
    for name in ("added", "angles", "bias"):
        if (array := getattr(walk, name)) is not None:
            columns[name] = _floats(array)
    data: dict[str, Any] = {
        "scenes": [
            {"kind": s.kind, "title": s.title, "caption": s.caption, "link": s.link, "seconds": s.seconds}
            for s in walk.scenes
        ],
        "characters": list(walk.characters),
        "tokens": [
            {"text": t.text, "id": t.id, "start": t.start, "end": t.end, "special": t.special} for t in walk.tokens
        ],
        "followed": walk.followed,
        "cells": int(walk.embedded.shape[1]),
        "dials": 0 if walk.angles is None else int(walk.angles.shape[1]),
        "note": walk.note,
        "sublayers": _strips(walk.sublayers),
        "layers": _strips(walk.layers),
        "attention": _lines(walk.attention, "attention", columns),
        "cross": None if walk.cross is None else _lines(walk.cross, "cross", columns),
        "next": None if walk.next is None else _candidates(walk.next),
        "written": None if walk.written is None else _candidates(walk.written),
        "made": walk.name,
    }
    return data, columns


def _floats(array: NDArray[np.floating]) -> _mount.Column:
    return np.ascontiguousarray(array, dtype=np.float32).ravel()


def _strips(strips: Strips) -> dict[str, Any]:
    return {
        "names": list(strips.names),
        "lengths": [float(length) for length in strips.lengths],
        "cosines": [float(cosine) for cosine in strips.cosines],
    }


def _lines(lines: Lines, name: str, columns: dict[str, _mount.Column]) -> dict[str, Any]:
    columns[f"{name}_weights"] = _floats(lines.weights)
    columns[f"{name}_blocked"] = np.ascontiguousarray(lines.blocked, dtype=np.uint8).ravel()
    return {
        "queries": list(lines.queries),
        "keys": list(lines.keys),
        "query": lines.query,
        "key": lines.key,
        "elsewhere": [float(weight) for weight in lines.elsewhere],
    }


def _candidates(candidates: Candidates) -> dict[str, Any]:
    return {
        "names": list(candidates.names),
        "probabilities": [float(p) for p in candidates.probabilities],
        "chosen": candidates.chosen,
    }
