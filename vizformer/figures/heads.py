"""All heads of a site as one mosaic: rows are layers, columns are heads.  One trace, never a subplot per head."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vizformer.figures.axes import name_axes
from vizformer.figures.figure import Figure, frame
from vizformer.figures.masks import add_masks
from vizformer.figures.style import fill, texts, weight_scale

TILE = 32  # cells per side of a small map; longer sequences are max-pooled, because a mean hides single strong cells


def head_grid(
    patterns: NDArray[np.floating],
    *,
    reasons: NDArray[np.integer] | None = None,
    layers: Sequence[int] | None = None,
    title: str = "",
) -> Figure:
    """Draws the weights of all heads as small maps.

    `patterns`: weights in 0..1 [layers, heads, queries, keys].
    `reasons`: why a cell is masked, 0 = visible, the same for all heads [queries, keys].
    """
    words = texts()
    patterns = np.asarray(patterns, dtype=np.float32)
    if patterns.ndim != 4 or 0 in patterns.shape:
        raise ValueError(f"patterns must be [layers, heads, queries, keys], not of shape {patterns.shape}")
    n_layers, n_heads = patterns.shape[:2]
    numbers = list(range(n_layers)) if layers is None else list(layers)
    if len(numbers) != n_layers:
        raise ValueError(f"{len(numbers)} layer numbers do not fit {n_layers} layers")
    tiles = _pool(patterns, np.maximum)
    height, width = tiles.shape[2:]
    why: NDArray[np.uint8] = np.zeros((height, width), np.uint8)
    if reasons is not None:
        if np.shape(reasons) != patterns.shape[2:]:
            raise ValueError(f"reasons of shape {np.shape(reasons)} do not fit maps of {patterns.shape[2:]}")
        why = _pool(np.asarray(reasons, dtype=np.uint8), np.minimum)  # 0, visible, as soon as one cell is
    tiles = np.where(why != 0, np.float32(np.nan), tiles)
    gap = max(1, max(height, width) // 10)
    layer_names = [words["layer_short"].replace("{layer}", str(number)) for number in numbers]
    head_names = [words["head_short"].replace("{head}", str(head)) for head in range(n_heads)]
    places = {"layer": "%{y}", "head": "%{x}"}
    figure = Figure().add_heatmap(
        z=_mosaic(tiles, gap, np.nan),
        zmin=0.0,
        zmax=1.0,
        colorscale=weight_scale(),
        colorbar={"title": {"text": words["weight"]}, "thickness": 14},
        hoverongaps=False,
        hovertemplate=fill(words["head_weight"], value="%{z:.4f}", **places),
    )
    figure.told_by = _largest_weights(patterns, reasons, layer_names, head_names, words)
    if why.any():
        masks = _mosaic(np.broadcast_to(why, tiles.shape), gap, 0)
        add_masks(figure, masks, words["head_masked"], words, places, hatched=False)
    name_axes(
        figure,
        _stretch(layer_names, height, gap),
        _stretch(head_names, width, gap),
        row_ticks=(_centres(n_layers, height, gap), layer_names),
        column_ticks=(_centres(n_heads, width, gap), head_names),
    )
    rows, columns = n_layers * (height + gap), n_heads * (width + gap)
    return frame(figure, title, height=int(min(760, max(240, 90 + 540 * rows / columns))))


def _largest_weights(
    patterns: NDArray[np.float32],
    reasons: NDArray[np.integer] | None,
    layers: Sequence[str],
    heads: Sequence[str],
    words: Mapping[str, str],
) -> Figure:
    """The largest weight of each head, over the queries that see more than one key: a single one gets 1 in every head."""
    seen = np.ones(patterns.shape[2:], bool) if reasons is None else np.asarray(reasons) == 0
    several = seen.sum(axis=1) > 1
    if not several.any():
        several[:] = True
    largest = patterns.max(axis=(2, 3), where=seen & several[:, None], initial=0)
    hover = fill(words["head_largest"], layer="%{y}", head="%{x}", value="%{z:.4f}")
    told = Figure().add_heatmap(
        z=largest, colorscale=weight_scale(), colorbar={"title": {"text": words["weight"]}}, hovertemplate=hover
    )
    name_axes(told, layers, heads, row_title=words["layer_axis"], column_title=words["head_axis"])
    return told


def _pool(maps: NDArray[Any], reduce: np.ufunc) -> NDArray[Any]:
    for axis in (-2, -1):
        length = maps.shape[axis]
        if length > TILE:
            maps = reduce.reduceat(maps, np.arange(TILE) * length // TILE, axis=axis)
    return maps


def _mosaic(tiles: NDArray[Any], gap: int, between: float) -> NDArray[Any]:
    """[layers, heads, rows, columns] -> one picture, with `gap` cells of `between` after each tile but the last."""
    padded = np.pad(tiles, ((0, 0), (0, 0), (0, gap), (0, gap)), constant_values=between)
    layers, heads, rows, columns = padded.shape
    return padded.transpose(0, 2, 1, 3).reshape(layers * rows, heads * columns)[:-gap, :-gap]


def _centres(count: int, size: int, gap: int) -> list[float]:
    return [index * (size + gap) + (size - 1) / 2 for index in range(count)]


def _stretch(names: Sequence[str], size: int, gap: int) -> list[str]:
    """The name of the tile for each of its rows, so that a hover can tell which one it is over."""
    return [name for name in names for _ in range(size + gap)][:-gap]
