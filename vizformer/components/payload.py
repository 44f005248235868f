"""Heads on their way to the browser: few bytes, and every number that is read off is the model's.

Weights travel as float32 while they are few, so that the last digit on screen agrees with the arithmetic beside it, and
as uint16 above `EXACT_BYTES`, off by at most 8e-6.

All heads of one kind go at once and are switched in the browser while they fit into `LIMIT_BYTES`.  Above that a payload
carries a thumbnail of each head and the queries and keys of the chosen one, from which the browser computes its map
(`operands.pack_operands`), or that map itself (`pack_chosen`), or the heads of one layer (`pack_layer`).  On a page it
carries an address instead, where the browser asks for each when it needs it (`operands.pack_address`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from vizformer.components.thumbnails import THUMBNAIL, pool, thumbnails

LIMIT_BYTES = 6_000_000
EXACT_BYTES = 1 << 20
_AT_ONCE = 1 << 18  # numbers
REASONS = {0: "visible", 1: "padding", 2: "future", 3: "window", 4: "painted", 6: "left out"}
"""Why a query may not see a key: the codes of the uint8 map of reasons."""


@dataclass(frozen=True)
class HeadsPayload:
    """The heads of one kind of attention, packed.

    Attributes:
        shape: (layers, heads, queries, keys).
        chosen: (layer, head) whose numbers are here in any case.
        held: whose numbers are here: of all heads, of the chosen layer, or of the chosen head only.
        columns: flat arrays by name.
            weights: float32, or uint16 with 65535 = 1.0; [layers, heads, queries, keys], [heads, queries, keys] of the
                chosen layer, or [queries, keys] of the chosen head.
            scores: float32, the same shape; absent where there are none.
            reasons: uint8 [queries, keys], see REASONS; [layers, queries, keys] where layers differ; absent where
                everything is visible.
            q, k: float32 [queries, d_head] (multiplied by the scale) and [keys, d_head], in the place of weights and
                scores: softmax(q k^T + by_distance[key - query + queries - 1]) over what is visible.
            by_distance: float32 [queries + keys - 1]; absent where nothing is added.
            run_starts, run_reasons: uint32 and uint8, in the place of reasons: where in the map, row after row, each run
                of equal reasons begins.
            thumbs: uint8, 255 * sqrt(weight), max-pooled [layers, heads, rows, columns]; absent up to THUMBNAIL tokens,
                and where one layer is held.
            thumb_reasons: uint8 [rows, columns] or [layers, rows, columns]; 0 where any cell of the pool is visible.
            measure_<name>: float32 [layers, heads], what the heads can be sorted by (`measured`).
        thumb_shape: (rows, columns) of a small map; the full map's where there are no thumbs.
        address: where the browser asks for a head (`address/layer/head`) and for the small maps and the measures of a
            layer (`address/layer`), each as a safetensors file with the columns above; None where all that there is
            came with the payload.
        measures: the names of the measures that come from the address.
        first: (query, key) in the text that the first row and column are, where this is a part of a longer one.
    """

    shape: tuple[int, int, int, int]
    chosen: tuple[int, int]
    held: Literal["all", "layer", "head"]
    thumb_shape: tuple[int, int]
    columns: Mapping[str, NDArray[np.generic]] = field(repr=False)
    address: str | None = None
    measures: tuple[str, ...] = ()
    first: tuple[int, int] = (0, 0)

    @property
    def complete(self) -> bool:
        """Whether the numbers of all heads are here."""
        return self.held == "all"

    @property
    def nbytes(self) -> int:
        return sum(column.nbytes for column in self.columns.values())

    def map_of(self, layer: int, head: int) -> "tuple[NDArray[np.float32], NDArray[np.uint8] | None]":
        """The weights of a head whose numbers are here, and why its cells are masked, [queries, keys] both.

        Raises:
            ValueError: the weights of this head are not here.
        """
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
        """The same with numbers that the heads can be sorted by; None is left out.

        Args:
            measures: by name, [layers, heads] each: `entropy`, `distance`, `first` are what the view has words for.

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


def pack_heads(
    weights: NDArray[np.floating],
    scores: NDArray[np.floating] | None = None,
    reasons: NDArray[np.integer] | None = None,
    *,
    chosen: tuple[int, int] = (0, 0),
    limit: int = LIMIT_BYTES,
) -> HeadsPayload:
    """Packs the heads of one kind; all of them where they fit into `limit` bytes, else thumbnails and the chosen one.

    Args:
        weights: attention weights in 0..1 [layers, heads, queries, keys].
        scores: q.k / sqrt(d_head) before the mask, the same shape; what stands in masked cells does not matter.
        reasons: why a cell is masked, 0 = visible [queries, keys] or [layers, queries, keys].
        chosen: (layer, head) to look at.

    Raises:
        ValueError: shapes that do not fit, weights that are no weights, a chosen head that does not exist.
    """
    weights = np.asarray(weights)
    _check_shapes(weights, scores, reasons, chosen)
    if not fits(weights.shape, scored=scores is not None, limit=limit):
        layer, head = chosen
        one_score = None if scores is None else scores[layer, head]
        return pack_chosen(thumbnails(weights), weights[layer, head], one_score, reasons, chosen=chosen)
    thumbs = thumbnails(weights) if max(weights.shape[2:]) > THUMBNAIL else None
    return _payload(weights.shape, chosen, "all", weights, scores, reasons, thumbs)


def fits(shape: tuple[int, ...], *, scored: bool = True, limit: int = LIMIT_BYTES) -> bool:
    """Whether the numbers of all heads go to the browser at once.

    Args:
        shape: (layers, heads, queries, keys).
        scored: whether the scores go too.
        limit: bytes.
    """
    return prod(shape) * (6 if scored else 2) <= limit


def pack_chosen(
    thumbs: NDArray[np.uint8],
    weights: NDArray[np.floating],
    scores: NDArray[np.floating] | None = None,
    reasons: NDArray[np.integer] | None = None,
    *,
    chosen: tuple[int, int],
    small_reasons: NDArray[np.integer] | None = None,
) -> HeadsPayload:
    """Packs one head beside thumbnails of all, for callers that never hold all maps at once.

    Args:
        thumbs: what `thumbnails` or `shades` made of every head [layers, heads, rows, columns].
        weights, scores: of the chosen head [queries, keys].
        reasons: of all layers, as for `pack_heads`; of the chosen one where `small_reasons` are those of all.
        chosen: (layer, head).
        small_reasons: the least reason in each pool [layers, rows, columns], where layers differ and not all are held.

    Raises:
        ValueError: as for `pack_heads`.
    """
    if thumbs.ndim != 4:
        raise ValueError(f"thumbs must be [layers, heads, rows, columns], not of shape {thumbs.shape}")
    one = np.asarray(weights)[None, None]
    _check_shapes(one, None if scores is None else np.asarray(scores)[None, None], reasons, (0, 0), len(thumbs))
    expected = (min(one.shape[2], THUMBNAIL), min(one.shape[3], THUMBNAIL))
    if thumbs.shape[2:] != expected:
        raise ValueError(f"thumbs of shape {thumbs.shape[2:]} do not belong to a map of {one.shape[2:]}: {expected}")
    shape = (thumbs.shape[0], thumbs.shape[1], one.shape[2], one.shape[3])
    if not (0 <= chosen[0] < shape[0] and 0 <= chosen[1] < shape[1]):
        raise ValueError(f"the chosen head {chosen} is not among {shape[0]} layers x {shape[1]} heads")
    payload = _payload(shape, chosen, "head", one, scores, reasons, thumbs)
    if small_reasons is None or not np.any(small_reasons):
        return payload
    if small_reasons.shape != (shape[0], *expected):
        raise ValueError(f"small_reasons of shape {small_reasons.shape} do not fit {(shape[0], *expected)}")
    columns = {**payload.columns, "thumb_reasons": np.ascontiguousarray(small_reasons, dtype=np.uint8).ravel()}
    return replace(payload, columns=columns)


def pack_layer(
    weights: NDArray[np.floating],
    reasons: NDArray[np.integer] | None = None,
    *,
    layer: int,
    layers: int,
    limit: int = LIMIT_BYTES,
    first: tuple[int, int] = (0, 0),
) -> HeadsPayload:
    """Packs the weights of one layer's heads, for pictures that lay heads over each other.

    Args:
        weights: of the layer [heads, queries, keys].
        reasons: why a cell is masked, 0 = visible [queries, keys].
        layer: which one it is, of `layers`.
        limit: bytes; a longer text is one for the map of a single head.
        first: (query, key) of the text that the first row and column are.

    Raises:
        ValueError: as for `pack_heads`, and where the layer alone does not fit.
    """
    one = np.asarray(weights)[None]
    _check_shapes(one, None, reasons, (0, 0))
    if not 0 <= layer < layers:
        raise ValueError(f"layer {layer} is not among {layers} layers")
    if not fits(one.shape, scored=False, limit=limit):
        raise ValueError(f"one layer's heads {one.shape[1:]} do not fit into {limit} bytes: show one of them as a map")
    return replace(_payload((layers, *one.shape[1:]), (layer, 0), "layer", one, None, reasons, None), first=first)


def describe(
    payload: HeadsPayload,
    query_tokens: Sequence[str],
    key_tokens: Sequence[str],
    layers: Sequence[int | str] | None,
) -> dict[str, Any]:
    """What the browser has to know about the columns: their shape, and the labels of its axes.

    Raises:
        ValueError: labels that do not fit the payload.
    """
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


def quantise(weights: NDArray[np.floating]) -> NDArray[np.uint16]:
    """Weights in 0..1 as uint16, 65535 = 1.0: off by at most 1 / 131070."""
    flat = np.ravel(weights)
    found = np.empty(flat.shape, np.uint16)
    for start in range(0, flat.size, _AT_ONCE):  # in float64 a map of 4,096 tokens would take 134 MB, three times
        part = flat[start : start + _AT_ONCE].astype(np.float64)
        found[start : start + _AT_ONCE] = np.rint(np.clip(part, 0.0, 1.0) * 65535.0)
    return found.reshape(np.shape(weights))


def _payload(
    shape: tuple[int, ...],
    chosen: tuple[int, int],
    held: Literal["all", "layer", "head"],
    weights: NDArray[np.floating],
    scores: NDArray[np.floating] | None,
    reasons: NDArray[np.integer] | None,
    thumbs: NDArray[np.uint8] | None,
) -> HeadsPayload:
    exact = 4 * weights.size <= EXACT_BYTES
    packed = np.ascontiguousarray(weights, dtype=np.float32) if exact else quantise(weights)
    columns: dict[str, NDArray[np.generic]] = {"weights": packed.ravel()}
    if scores is not None:
        columns["scores"] = np.ascontiguousarray(scores, dtype=np.float32).ravel()
    why = once(reasons)
    if why is not None:
        columns["reasons"] = (why[chosen[0]] if held == "head" and why.ndim == 3 else why).ravel()
    thumb_shape = (shape[2], shape[3])
    if thumbs is not None:
        thumb_shape = (thumbs.shape[2], thumbs.shape[3])
        columns["thumbs"] = thumbs.ravel()
        if why is not None:  # the minimum over a pool is 0, visible, as soon as one of its cells is
            columns["thumb_reasons"] = pool(why, np.minimum).ravel()
    layers, heads, queries, keys = shape
    return HeadsPayload(
        shape=(layers, heads, queries, keys),
        chosen=(int(chosen[0]), int(chosen[1])),
        held=held,
        thumb_shape=thumb_shape,
        columns=columns,
    )


def once(reasons: NDArray[np.integer] | None) -> NDArray[np.uint8] | None:
    """[queries, keys] where all layers have the same, else [layers, queries, keys]; None where nothing is masked."""
    if reasons is None or not np.any(reasons):
        return None
    maps = np.ascontiguousarray(reasons, dtype=np.uint8)
    return maps[0] if maps.ndim == 3 and bool((maps == maps[0]).all()) else maps


def _check_shapes(
    weights: NDArray[np.floating],
    scores: NDArray[np.floating] | None,
    reasons: NDArray[np.integer] | None,
    chosen: tuple[int, int],
    layers: int | None = None,
) -> None:
    """`layers`: how many the reasons are of, where that is not as many as the weights."""
    if weights.ndim != 4 or 0 in weights.shape:
        raise ValueError(f"weights must be [layers, heads, queries, keys], none of them 0, not {weights.shape}")
    low, high = float(np.min(weights)), float(np.max(weights))
    if not (low >= -1e-4 and high <= 1.0001):  # also where they are NaN
        raise ValueError(f"weights must lie in 0..1, these lie in {low:g}..{high:g}: pass them after the softmax")
    if scores is not None and np.shape(scores) != weights.shape:
        raise ValueError(f"scores of shape {np.shape(scores)} do not fit weights of shape {weights.shape}")
    one, every = weights.shape[2:], (weights.shape[0] if layers is None else layers, *weights.shape[2:])
    if reasons is not None and np.shape(reasons) not in (one, every):
        raise ValueError(f"reasons of shape {np.shape(reasons)} do not fit maps of {one} (queries, keys), nor {every}")
    if not (0 <= chosen[0] < weights.shape[0] and 0 <= chosen[1] < weights.shape[1]):
        raise ValueError(f"the chosen head {chosen} is not among {weights.shape[0]} layers x {weights.shape[1]} heads")
