"""The mask view: mask, scores and weights of a head as panels of one grid, the same cell lit in all of them.

    flips = mount(view, key="paint") # cells that differ from the view's own mask, painted by hand

Rows are queries, columns are keys.  A blocked cell says why, an open one of a sparse pattern what keeps it open.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from vizformer.components import _mount
from vizformer.word_tables import words_of

LARGEST = 32  # rows and columns that are drawn; of a longer text the first ones

Panel = Literal["mask", "scores", "weights"]

ENGLISH: Mapping[str, str] = words_of(__file__)

_COMPONENT = _mount.Component("mask", ENGLISH)


@dataclass(frozen=True)
class MaskView:
    queries: Sequence[str]
    keys: Sequence[str]
    reasons: NDArray[np.integer]  # why a cell is blocked, 0 where it is open (`vizformer.model.Reason`) [queries, keys]
    scores: NDArray[np.floating] | None = None  # before the mask; None without that panel
    weights: NDArray[np.floating] | None = None  # after the softmax; None without that panel
    # why a cell of a sparse pattern is open (1 window, 2 global, 3 random), 0 for no special reason
    kept: NDArray[np.integer] | None = None
    unused: Sequence[int] = ()
    own: NDArray[np.integer] | None = None  # for painting: the mask as it was before anything was painted

    def __post_init__(self) -> None:
        shape = (len(self.queries), len(self.keys))
        for name in ("reasons", "scores", "weights", "kept", "own"):
            value = getattr(self, name)
            if value is not None and np.shape(value) != shape:
                raise ValueError(f"{name} of shape {np.shape(value)} do not fit {shape[0]} queries and {shape[1]} keys")


def peek(*, key: str, selected: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """The cells that the next `mount` with this key and `selected` will return, before the weights are computed."""
    return _pairs(_mount.current(key, _state(selected), _parse, ahead=True)[0])


def mount(
    view: MaskView, *, paintable: bool = False, selected: Sequence[tuple[int, int]] = (), key: str
) -> tuple[tuple[int, int], ...]:
    """Shows the panels on a Streamlit page; the painted cells, (query, key), whose state differs from `view.own`.

    `paintable`: whether cells can be blocked and opened by hand.
    """
    shown, echo = _mount.current(key, _state(selected), _parse)
    data, columns = _data(view, paintable)
    _COMPONENT.mount(data, columns, version=echo.version, selected={"flips": echo.sent or []}, key=key)
    return _pairs(shown)


def to_html(
    view: MaskView, *, paintable: bool = False, selected: Sequence[tuple[int, int]] = (), title: str = "Mask"
) -> _mount.Html:
    """Returns the panels as one HTML file that works without a server; painting changes the mask only."""
    data, columns = _data(view, paintable)
    return _COMPONENT.page(data, columns, selected={"flips": _state(selected)}, title=title)


def _state(pairs: Sequence[tuple[int, int]]) -> list[list[int]]:
    return sorted([int(query), int(key)] for query, key in pairs)


def _pairs(state: Sequence[Sequence[int]] | None) -> tuple[tuple[int, int], ...]:
    return tuple((query, key) for query, key in state or ())


def _parse(report: Mapping[str, Any]) -> list[list[int]] | None:
    """The browser's report: pairs of whole numbers within what is drawn, in order."""
    flips = report.get("flips")
    if not isinstance(flips, list):
        return None
    pairs = [
        [pair[0], pair[1]]
        for pair in flips[: LARGEST * LARGEST]
        if isinstance(pair, list) and len(pair) == 2 and all(type(i) is int and 0 <= i < LARGEST for i in pair)
    ]
    return sorted(pairs)


def _data(view: MaskView, paintable: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    rows, columns = slice(0, LARGEST), slice(0, LARGEST)

    def flat(value: NDArray[Any], dtype: type[np.generic]) -> NDArray[Any]:
        return np.ascontiguousarray(np.asarray(value)[rows, columns], dtype=dtype).ravel()

    sent = {"reasons": flat(view.reasons, np.uint8)}
    panels: list[Panel] = ["mask"]
    for name in ("scores", "weights"):
        if (value := getattr(view, name)) is not None:
            sent[name] = flat(value, np.float32)
            panels.append(name)
    for name in ("kept", "own"):
        if (value := getattr(view, name)) is not None:
            sent[name] = flat(value, np.uint8)
    described = {
        "queries": list(view.queries[rows]),
        "keys": list(view.keys[columns]),
        "unused": [int(i) for i in view.unused],
        "panels": panels,
        "paintable": paintable,
    }
    return described, sent
