"""Heads on their way to the browser: few bytes, and every number that is read off is the model's.

All heads of one kind go at once and are switched in the browser while they fit into `LIMIT_BYTES`.  Above that a payload
carries a thumbnail of each head and the queries and keys of the chosen one, from which the browser computes its map, or
that map itself (`packing.pack`), or the heads of one layer (`packing.pack_lines`).  On a page it carries an address
instead, where the browser asks for each when it needs it (`packing.pack_address`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

LIMIT_BYTES = 6_000_000
REASONS = {0: "visible", 1: "padding", 2: "future", 3: "window", 4: "painted", 6: "left out", 7: "masked by the model"}
"""Why a query may not see a key: the codes of the uint8 map of reasons."""


@dataclass(frozen=True)
class HeadsPayload:
    """The heads of one kind of attention, packed."""

    shape: tuple[int, int, int, int]  # (layers, heads, queries, keys)
    chosen: tuple[int, int]  # (layer, head) whose numbers are here in any case
    # whose numbers are here: of all heads, of the chosen layer, or of the chosen head only
    held: Literal["all", "layer", "head"]
    thumb_shape: tuple[int, int]  # (rows, columns) of a small map; the full map's where there are no thumbs
    # flat arrays by name. weights: float32, or uint16 with 65535 = 1.0; [layers, heads, queries, keys], [heads,
    # queries, keys] of the chosen layer, or [queries, keys] of the chosen head. scores: float32, the same shape; absent
    # where there are none. reasons: uint8 [queries, keys], see REASONS; [layers, queries, keys] where layers differ;
    # absent where everything is visible. q, k: float32 [queries, d_head] (multiplied by the scale) and [keys, d_head],
    # in the place of weights and scores: softmax(q k^T + by_distance[key - query + queries - 1]) over what is visible.
    # by_distance: float32 [queries + keys - 1]; absent where nothing is added. run_starts, run_reasons: uint32 and
    # uint8, in the place of reasons: where in the map, row after row, each run of equal reasons begins. thumbs: uint8,
    # 255 * sqrt(weight), max-pooled [layers, heads, rows, columns]; absent up to THUMBNAIL tokens, and where one layer
    # is held. thumb_reasons: uint8 [rows, columns] or [layers, rows, columns]; 0 where any cell of the pool is visible.
    # measure_<name>: float32 [layers, heads], what the heads can be sorted by (`measured`)
    columns: Mapping[str, NDArray[np.generic]] = field(repr=False)
    # where the browser asks for a head (`address/layer/head`) and for the small maps and the measures of a layer
    # (`address/layer`), each as a safetensors file with the columns above; None where all that there is came with the
    # payload
    address: str | None = None
    measures: tuple[str, ...] = ()  # the names of the measures that come from the address
    # (query, key) in the text that the first row and column are, where this is a part of a longer one
    first: tuple[int, int] = (0, 0)

    @property
    def complete(self) -> bool:
        """Whether the numbers of all heads are here."""
        return self.held == "all"

    @property
    def nbytes(self) -> int:
        return sum(column.nbytes for column in self.columns.values())

    def map_of(self, layer: int, head: int) -> "tuple[NDArray[np.float32], NDArray[np.uint8] | None]":
        """The weights of a head whose numbers are here, and why its cells are masked, [queries, keys] both."""
        _layers, heads, *size = self.shape
        column = self.columns.get("weights")
        here = self.held == "all" or (layer == self.chosen[0] and (self.held == "layer" or head == self.chosen[1]))
        if column is None or not here:
            raise ValueError(f"the weights of layer {layer}, head {head} are not in this payload")
        index = {"all": layer * heads + head, "layer": head, "head": 0}[self.held]
        weights = column.reshape(-1, *size)[index]
        one = 65535 if column.dtype == np.uint16 else 1
        reasons = self.columns.get("reasons")
        why = None if reasons is None else reasons.reshape(-1, *size)[layer if reasons.size > size[0] * size[1] else 0]
        return (weights / np.float32(one)).astype(np.float32), None if why is None else why.astype(np.uint8)

    def measured(self, **measures: NDArray[np.floating] | None) -> "HeadsPayload":
        """A payload with measures that the heads can be sorted by; a measure of None is left out.

        Args:
            measures: by name, [layers, heads] each: `entropy`, `distance`, `first` are what the view has words for, and
                `last`, `previous`, `own`, `next`, by which it groups the heads.

        Raises:
            ValueError: a measure that is not one of these heads.
        """
        columns = dict(self.columns)
        for name, values in measures.items():
            if values is None:
                continue
            if values.shape != self.shape[:2]:
                raise ValueError(f"{name} of shape {values.shape} does not fit {self.shape[:2]} (layers, heads)")
            columns[f"measure_{name}"] = np.ascontiguousarray(values, dtype=np.float32).ravel()
        return replace(self, columns=columns)


def fits(shape: tuple[int, ...], *, scored: bool = True, limit: int = LIMIT_BYTES) -> bool:
    """Whether the numbers of all heads go to the browser at once.

    `scored`: whether the scores go too.
    """
    return prod(shape) * (6 if scored else 2) <= limit


def once(reasons: NDArray[np.integer] | None) -> NDArray[np.uint8] | None:
    """[queries, keys] where all layers have the same, else [layers, queries, keys]; None where nothing is masked."""
    if reasons is None or not np.any(reasons):
        return None
    maps = np.ascontiguousarray(reasons, dtype=np.uint8)
    return maps[0] if maps.ndim == 3 and bool((maps == maps[0]).all()) else maps


def describe(
    payload: HeadsPayload, query_tokens: Sequence[str], key_tokens: Sequence[str], layers: Sequence[int | str] | None
) -> dict[str, Any]:
    """The description of the columns for the browser: their shape, and the labels of the axes."""
    labels = list(range(payload.shape[0])) if layers is None else list(layers)
    found = (len(labels), len(query_tokens), len(key_tokens))
    expected = (payload.shape[0], payload.shape[2], payload.shape[3])
    if found != expected:
        raise ValueError(f"layers, query_tokens and key_tokens have the lengths {found}; these heads need {expected}")
    return {
        "shape": list(payload.shape),
        "thumb_shape": list(payload.thumb_shape),
        "held": payload.held,
        "d_head": len(payload.columns["q"]) // payload.shape[2] if "q" in payload.columns else None,
        "chosen": None if payload.complete or payload.address else list(payload.chosen),  # equal data is not sent again
        "address": payload.address,
        "measures": list(payload.measures),
        "first": list(payload.first),
        "layer_labels": labels,
        "query_tokens": list(query_tokens),
        "key_tokens": list(key_tokens),
    }


def count(value: object) -> int | None:
    """A number from 0 up that came from a browser; None where it is anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def nearest(value: int, length: int) -> int:
    """The place nearest to `value` on an axis of `length`."""
    return max(0, min(length - 1, value))
