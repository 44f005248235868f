"""Packs the maps of heads for the browser.

    pack(heads)         # what `attention` and `reading` show: all heads, or small maps and one
    pack_lines(heads)   # what `lines` and `player` show: all heads, or those of one layer
    pack_address(heads, address)   # the same as `pack`, fetched when it is looked at: `head_columns`, `layer_columns`

`heads` are whatever answers as `vizformer.components.contract.Heads` says.  Weights travel as float32 while they are few, so
that the last digit on screen agrees with the arithmetic beside it, and as uint16 above `EXACT_BYTES`, off by at most 8e-6.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from vizformer.components.contract import THUMBNAIL, Arrays, Heads, Operands, pool, thumbnails

# Heads on their way to the browser: few bytes, and every number that is read off is the model's.
#
# All heads of one kind go at once and are switched in the browser while they fit into `LIMIT_BYTES`.  Above that a payload
# carries a thumbnail of each head and the queries and keys of the chosen one, from which the browser computes its map, or
# that map itself (`packing.pack`), or the heads of one layer (`packing.pack_lines`).  On a page it carries an address
# instead, where the browser asks for each when it needs it (`packing.pack_address`).

LIMIT_BYTES = 6_000_000

_DIGITS = (4, 6, 9)  # four digits are more than a colour shows


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
    # where there are none. reasons: uint8 [queries, keys], the codes of `vizformer.model.Reason`; [layers, queries, keys]
    # where layers differ; absent where everything is visible.
    # q, k: float32 [queries, d_head] (multiplied by the scale) and [keys, d_head],
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

    def has(self, layer: int, head: int) -> bool:
        """Whether the numbers of a head are here."""
        of_layer = layer == self.chosen[0] and (self.held == "layer" or head == self.chosen[1])
        return self.held == "all" or of_layer

    def map_of(self, layer: int, head: int) -> "tuple[NDArray[np.float32], NDArray[np.uint8] | None]":
        """The weights of a head whose numbers are here, and why its cells are masked, [queries, keys] both."""
        _layers, heads, *size = self.shape
        column = self.columns.get("weights")
        if column is None or not self.has(layer, head):
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


def short(value: float, decimals: Sequence[int]) -> float:
    """The number with the fewest significant digits, at least four, that is written alike with each of these `decimals`.

    A number that was rounded is not to be rounded again: 5.1355 with four digits is 5.135 or 5.136, which no longer says
    whether the two decimals of the whole number are .13 or .14.
    """
    for digits in _DIGITS:
        found = float(f"{value:.{digits}g}")
        if all(f"{found:.{n}f}" == f"{value:.{n}f}" and not _is_half(found, n) for n in decimals):
            return found
    return value


def _is_half(value: float, decimals: int) -> bool:
    """Whether it lies between two numbers of so many decimals, so that Python and JavaScript may take different ones."""
    return 2 * abs(value) * 10.0**decimals % 2 == 1


EXACT_BYTES = 1 << 20
_AT_ONCE = 1 << 16  # numbers: of more than a megabyte the system gives and takes every page


def pack(heads: Heads, *, chosen: tuple[int, int] = (0, 0), limit: int = LIMIT_BYTES) -> HeadsPayload:
    """Packs all heads where they fit into `limit` bytes; else small maps, and what the chosen one is computed from."""
    layers, whole = range(heads.shape[0]), fits(heads.shape, scored=heads.scored, limit=limit)
    small = [heads.small(layer) for layer in layers] if heads.measures or not whole else []
    if whole:
        scores = _maps(heads, heads.scores, layers) if heads.scored else None
        payload = pack_heads(_weights(heads), scores, heads.blocked(), chosen=chosen, limit=limit)
    elif (found := heads.operands(*chosen)) is not None:
        payload = pack_operands(np.stack([maps for maps, _ in small]), found, heads.blocked(), chosen=chosen)
    else:
        one, score = heads.pattern(*chosen), heads.scores(*chosen) if heads.scored else None
        payload = pack_chosen(np.stack([maps for maps, _ in small]), one, score, heads.blocked(), chosen=chosen)
    return payload.measured(**{name: np.stack([found[name] for _, found in small]) for name in heads.measures})


def pack_lines(
    heads: Heads, *, layer: int = 0, queries: range | None = None, keys: range | None = None, limit: int = LIMIT_BYTES
) -> HeadsPayload:
    """Packs the weights of all heads where they fit into `limit` bytes; else of one layer, or of a part of the text."""
    if queries is None and keys is None and fits(heads.shape, scored=False, limit=limit):
        return pack_heads(_weights(heads), None, heads.blocked(), limit=limit)
    rows, columns = queries or range(heads.shape[2]), keys or range(heads.shape[3])
    weights = _maps(heads, lambda layer, head: heads.pattern(layer, head, queries, keys), [layer])[0]
    why = heads.blocked(layer)
    why = None if why is None else why[rows.start : rows.stop, columns.start : columns.stop]
    return pack_layer(weights, why, layer=layer, layers=heads.shape[0], first=(rows.start, columns.start))


def pack_address(heads: Heads, address: str) -> HeadsPayload:
    """Packs no head at all, but the address (a path of this server, no slash behind) at which the browser asks for each."""
    why, (queries, keys) = once(heads.blocked()), heads.shape[2:]
    return HeadsPayload(
        shape=heads.shape,
        chosen=(0, 0),
        held="head",
        thumb_shape=(min(queries, THUMBNAIL), min(keys, THUMBNAIL)),
        columns={} if why is None else {"thumb_reasons": pool(why, np.minimum).ravel()},
        address=address,
        measures=heads.measures,
    )


def head_columns(heads: Heads, layer: int, head: int) -> dict[str, NDArray[np.generic]]:
    """The response to `address/layer/head`: the operands of a head's map, or the map itself."""
    why = heads.blocked(layer)
    if (found := heads.operands(layer, head)) is not None:
        return operand_columns(found, why)
    scores = heads.scores(layer, head)[None, None] if heads.scored else None
    columns = pack_heads(heads.pattern(layer, head)[None, None], scores, why, limit=2**62).columns
    return {name: columns[name] for name in ("weights", "scores", "reasons") if name in columns}


def layer_columns(heads: Heads, layer: int) -> dict[str, NDArray[np.generic]]:
    """The response to `address/layer`: the small maps of a layer's heads, and their measures."""
    maps, measures = heads.small(layer)
    return {"thumbs": maps.ravel(), **{f"measure_{name}": measures[name] for name in heads.measures}}


def _weights(heads: Heads) -> NDArray[np.floating]:
    """The maps of all heads; of arrays those that are there, not a copy."""
    return heads.weights if isinstance(heads, Arrays) else _maps(heads, heads.pattern, range(heads.shape[0]))


def _maps(heads: Heads, of: Callable[[int, int], NDArray[np.floating]], layers: Sequence[int]) -> NDArray[np.floating]:
    """The maps of all heads of some layers [layers, heads, queries, keys]; no map is held twice."""
    found: NDArray[np.floating] | None = None
    for at, (layer, head) in enumerate(product(layers, range(heads.shape[1]))):
        one = of(layer, head)
        found = np.empty((len(layers), heads.shape[1], *one.shape), np.float32) if found is None else found
        found[divmod(at, heads.shape[1])] = one
    assert found is not None
    return found


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
        weights: attention weights in 0..1, or NaN [layers, heads, queries, keys].
        scores: those before the mask (`contract.Heads.scores`), the same shape; what stands in masked cells does not matter.
        reasons: why a cell is masked, 0 = visible [queries, keys] or [layers, queries, keys].

    Raises:
        ValueError: shapes that do not fit, weights that are no weights, a chosen head that does not exist.
    """
    weights = np.asarray(weights)
    columns = _map_columns(weights, scores)
    if fits(weights.shape, scored=scores is not None, limit=limit):
        thumbs = thumbnails(weights) if max(weights.shape[2:]) > THUMBNAIL else None
        return _payload(weights.shape, chosen, "all", columns, reasons, thumbs)
    one = tuple(slice(max(0, at), max(0, at) + 1) for at in chosen)
    columns = _map_columns(weights[one], None if scores is None else scores[one])
    return _payload(weights.shape, chosen, "head", columns, reasons, thumbnails(weights))


def pack_operands(
    thumbs: NDArray[np.uint8], head: Operands, reasons: NDArray[np.integer] | None = None, *, chosen: tuple[int, int]
) -> HeadsPayload:
    """Packs what one head is computed from, beside thumbnails of all.

    Args:
        thumbs: as for `pack_chosen`.
        reasons: as for `pack_chosen`.
        chosen: as for `pack_chosen`.
    """
    if head.q.ndim != 2 or head.k.ndim != 2 or head.q.shape[1] != head.k.shape[1]:
        raise ValueError(f"q and k must be [tokens, d_head] with one d_head, not {head.q.shape} and {head.k.shape}")
    size = (len(head.q), len(head.k))
    if head.by_distance is not None and head.by_distance.shape != (sum(size) - 1,):
        raise ValueError(f"by_distance must have {sum(size) - 1} numbers, not {head.by_distance.shape}")
    why = once(reasons)
    columns = operand_columns(head, why[chosen[0]] if why is not None and why.ndim == 3 else why)
    return _payload((*thumbs.shape[:2], *size), chosen, "head", columns, reasons, thumbs)


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
        weights: those of the chosen head, [queries, keys].
        scores: those of the chosen head, [queries, keys].
        reasons: of all layers, as for `pack_heads`; of the chosen one where `small_reasons` are those of all.
        small_reasons: the least reason in each pool [layers, rows, columns], where layers differ and not all are held.
    """
    if thumbs.ndim != 4:
        raise ValueError(f"thumbs must be [layers, heads, rows, columns], not of shape {thumbs.shape}")
    columns = _map_columns(np.asarray(weights)[None, None], None if scores is None else np.asarray(scores)[None, None])
    payload = _payload((*thumbs.shape[:2], *np.shape(weights)), chosen, "head", columns, reasons, thumbs)
    if small_reasons is None or not np.any(small_reasons):
        return payload
    if small_reasons.shape != (payload.shape[0], *payload.thumb_shape):
        raise ValueError(f"small_reasons of shape {small_reasons.shape} do not fit {payload.thumb_shape}")
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
        first: (query, key) of the text that the first row and column are.

    Raises:
        ValueError: as for `pack_heads`, and where the layer alone does not fit.
    """
    one = np.asarray(weights)[None]
    if not 0 <= layer < layers:
        raise ValueError(f"layer {layer} is not among {layers} layers")
    if not fits(one.shape, scored=False, limit=limit):
        raise ValueError(f"one layer's heads {one.shape[1:]} do not fit into {limit} bytes: show one of them as a map")
    return replace(
        _payload((layers, *one.shape[1:]), (layer, 0), "layer", _map_columns(one), reasons, None), first=first
    )


def quantise(weights: NDArray[np.floating]) -> NDArray[np.uint16]:
    """Weights in 0..1 as uint16, 65535 = 1.0: off by at most 1 / 131070."""
    flat = np.ravel(weights)
    found = np.empty(flat.shape, np.uint16)
    for start in range(0, flat.size, _AT_ONCE):  # in float64 a map of 4,096 tokens would take 134 MB, three times
        part = flat[start : start + _AT_ONCE].astype(np.float64)
        found[start : start + _AT_ONCE] = np.rint(np.clip(part, 0.0, 1.0) * 65535.0)
    return found.reshape(np.shape(weights))


def operand_columns(head: Operands, reasons: NDArray[np.integer] | None = None) -> dict[str, NDArray[np.generic]]:
    """The columns from which the browser computes one head; see `HeadsPayload.columns`."""
    columns: dict[str, NDArray[np.generic]] = {
        "q": np.ascontiguousarray(head.q, dtype=np.float32).ravel(),
        "k": np.ascontiguousarray(head.k, dtype=np.float32).ravel(),
    }
    if head.by_distance is not None:
        columns["by_distance"] = np.ascontiguousarray(head.by_distance, dtype=np.float32)
    if reasons is not None and np.any(reasons):
        flat = np.ascontiguousarray(reasons, dtype=np.uint8).ravel()
        starts = np.concatenate([[0], np.flatnonzero(flat[1:] != flat[:-1]) + 1])
        columns |= {"run_starts": starts.astype(np.uint32), "run_reasons": flat[starts]}
    return columns


def _map_columns(
    weights: NDArray[np.floating], scores: NDArray[np.floating] | None = None
) -> dict[str, NDArray[np.generic]]:
    """The columns of maps [layers, heads, queries, keys]."""
    if weights.ndim != 4 or 0 in weights.shape:
        raise ValueError(f"weights must be [layers, heads, queries, keys], none of them 0, not {weights.shape}")
    low, high = float(np.fmin.reduce(weights, axis=None)), float(np.fmax.reduce(weights, axis=None))
    if low < -1e-4 or high > 1.0001:
        raise ValueError(f"weights must lie in 0..1, these lie in {low:g}..{high:g}: pass them after the softmax")
    exact = 4 * weights.size <= EXACT_BYTES or any(np.isnan(one).any() for one in weights)  # (uint16 has no NaN)
    packed = np.ascontiguousarray(weights, dtype=np.float32) if exact else quantise(weights)
    if scores is None:
        return {"weights": packed.ravel()}
    if np.shape(scores) != weights.shape:
        raise ValueError(f"scores of shape {np.shape(scores)} do not fit weights of shape {weights.shape}")
    return {"weights": packed.ravel(), "scores": np.ascontiguousarray(scores, dtype=np.float32).ravel()}


def _payload(
    shape: tuple[int, ...],
    chosen: tuple[int, int],
    held: Literal["all", "layer", "head"],
    numbers: dict[str, NDArray[np.generic]],
    reasons: NDArray[np.integer] | None,
    thumbs: NDArray[np.uint8] | None,
) -> HeadsPayload:
    """Adds masks and small maps to the numbers, where they belong to heads of this shape."""
    layers, heads, *size = shape
    if not (0 <= chosen[0] < layers and 0 <= chosen[1] < heads):
        raise ValueError(f"the chosen head {chosen} is not among {layers} layers x {heads} heads")
    if reasons is not None and np.shape(reasons) not in ((*size,), (layers, *size)):
        raise ValueError(f"reasons of shape {np.shape(reasons)} do not fit maps of {(*size,)} (queries, keys)")
    thumb_shape, why = (size[0], size[1]), once(reasons)
    if why is not None and "weights" in numbers:
        numbers["reasons"] = (why[chosen[0]] if held == "head" and why.ndim == 3 else why).ravel()
    if thumbs is not None:
        thumb_shape = (min(size[0], THUMBNAIL), min(size[1], THUMBNAIL))
        if thumbs.shape[2:] != thumb_shape:
            raise ValueError(f"thumbs of shape {thumbs.shape[2:]} do not belong to a map of {(*size,)}: {thumb_shape}")
        numbers["thumbs"] = thumbs.ravel()
        if why is not None:  # the minimum over a pool is 0, visible, as soon as one of its cells is
            numbers["thumb_reasons"] = pool(why, np.minimum).ravel()
    return HeadsPayload(
        shape=(layers, heads, size[0], size[1]),
        chosen=(int(chosen[0]), int(chosen[1])),
        held=held,
        thumb_shape=thumb_shape,
        columns=numbers,
    )
