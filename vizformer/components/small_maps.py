"""Small maps: what a head looks like in a few cells, however long the text is."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

THUMBNAIL = 32
"""Cells per side of a small map; longer sequences are max-pooled, because a mean hides single strong cells."""


def pools(length: int) -> NDArray[np.int64]:
    """The first indices of the pools of a small map along an axis: at most THUMBNAIL pools of sizes that differ by one."""
    n = min(length, THUMBNAIL)
    return np.arange(n) * length // n


def thumbnails(weights: NDArray[np.floating]) -> NDArray[np.uint8]:
    """Small maps: max-pooled to at most 32 x 32 and square-root scaled [..., queries, keys] -> [..., rows, columns]."""
    return shades(pool(np.asarray(weights), np.fmax))


def shades(pooled: NDArray[np.floating]) -> NDArray[np.uint8]:
    """The small maps of weights that are pooled already, 255 * sqrt(weight), 0 for NaN [..., rows, columns]."""
    return np.asarray(np.rint(255.0 * np.sqrt(np.nan_to_num(np.clip(pooled, 0.0, 1.0)))), dtype=np.uint8)


def pool(maps: NDArray[Any], reduce: np.ufunc) -> NDArray[Any]:
    """Reduces the last two axes to at most THUMBNAIL pools each, of sizes that differ by at most one.

    The rows of a pool first, whole rows at a time: for 4,096 tokens 1 ms, where `reduceat` along the rows takes 100.
    """
    rows, columns = maps.shape[-2:]
    if rows > THUMBNAIL:
        begins = pools(rows).tolist()
        ends = [*begins[1:], rows]
        parts = [reduce.reduce(maps[..., a:b, :], axis=-2) for a, b in zip(begins, ends, strict=True)]
        maps = np.stack(parts, axis=-2)
    return reduce.reduceat(maps, pools(columns), axis=-1) if columns > THUMBNAIL else maps
