"""All heads of a site as one mosaic (rows are layers, columns are heads), and where each head's slice goes."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vizformer.figures.attention import add_masks
from vizformer.figures.figure import Figure, frame, name_axes, name_rows
from vizformer.figures.style import QUALITATIVE, fill, reach, safe, signed, texts, weight_scale

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


# Where each head's slice goes: the vectors of one token, cut by head, and what each head adds.

BAND, STRIP = 0.24, 0.54
"""Heights, where a row has 1: of the band that says whose columns these are, and of the strip below it."""

MOST_NAMED = 16  # bands of so many slices are named


def head_slices(
    rows: Sequence[NDArray[np.floating]],
    names: Sequence[str],
    n_slices: Sequence[int],
    *,
    chosen: int | None = None,
    title: str = "",
) -> Figure:
    """Draws vectors as strips, one above the other, with the columns of each head under a band of its colour.

    Each strip has a colour scale of its own (its largest |value|): their sizes differ by far.

    Args:
        n_slices: into how many heads each is cut; 0 for a vector that belongs to no head.
        chosen: the head whose slice is framed, by its number among the slices of the row that has most.
    """
    words = texts()
    if not len(rows) == len(names) == len(n_slices) > 0:
        raise ValueError(f"{len(rows)} rows, {len(names)} names and {len(n_slices)} numbers of slices do not fit")
    if any(len(row) == 0 or (n and len(row) % n) for row, n in zip(rows, n_slices, strict=True)):
        raise ValueError(f"rows of {[len(row) for row in rows]} numbers cannot be cut into {list(n_slices)} slices")
    most = max(n_slices)
    figure = Figure()
    # Set at once: with each one that is added, Plotly checks all that are there again.
    shapes: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    for place, (row, name, n) in enumerate(zip(rows, names, n_slices, strict=True)):
        values = np.asarray(row, dtype=np.float32)
        heads = [words["head"].replace("{head}", str(i * n // len(values))) for i in range(len(values))] if n else []
        sentence = "slice_value" if n else "whole_value"
        figure.add_heatmap(
            z=(values / np.float32(reach(values)))[None],
            x=np.arange(len(values), dtype=np.int32),
            y=np.array([_middle(place) - STRIP / 2, _middle(place) + STRIP / 2], dtype=np.float32),  # its edges
            **signed(1.0),
            showscale=False,
            customdata=values[None],
            text=[[safe(head) for head in heads]] if n else None,
            hovertemplate=fill(
                words[sentence], row=safe(name), column="%{x}", head="%{text}", value="%{customdata:.4f}"
            ),
        )
        for index in range(n):
            drawn, named = _band(place, index, n, len(values), most, chosen, words)
            shapes += drawn
            annotations += named
    frame(figure, title, height=90 + 62 * len(rows))
    longest = max(len(row) for row in rows)
    figure.told_by = Figure(
        *({**trace, "z": trace["customdata"], "y": np.array([place])} for place, trace in enumerate(figure.parts[0]))
    )
    figure.told_by.update_layout(
        xaxis={"title": {"text": safe(words["column"])}},
        yaxis={"tickvals": list(range(len(rows))), "ticktext": [safe(name) for name in names]},
    )
    figure.update_layout(
        yaxis={
            "tickvals": [_middle(place) for place in range(len(rows))],
            "ticktext": [safe(name) for name in names],
            "range": [len(rows) - 0.42, -0.62],
            "showgrid": False,
        },
        xaxis={"title": {"text": safe(words["column"])}, "range": [-0.5, longest - 0.5], "showgrid": False},
        shapes=shapes,
        annotations=annotations,
    )
    return figure


def _band(
    place: int, index: int, n: int, length: int, most: int, chosen: int | None, words: Mapping[str, str]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The shapes and the annotations that say whose columns these are."""
    width, top = length / n, _middle(place) - STRIP / 2 - BAND
    start, end = index * width - 0.5, (index + 1) * width - 0.5
    # A shared key/value head has the colour of the first query head that reads it.
    colour = QUALITATIVE[(index * most // n) % len(QUALITATIVE)]
    across = {"type": "rect", "x0": start, "x1": end, "y0": top}
    line = {"width": 1, "color": "rgba(255,255,255,0.7)"}
    shapes = [{**across, "y1": top + BAND, "fillcolor": colour, "layer": "below", "line": line}]
    if chosen is not None and chosen * n // most == index:
        shapes.append({**across, "y1": top + BAND + STRIP, "line": {"width": 3, "color": colour}})
    if n > MOST_NAMED:
        return shapes, []
    text = safe(words["head_short"].replace("{head}", str(index)))
    middle = {"x": (start + end) / 2, "y": top + BAND / 2}
    return shapes, [{**middle, "text": text, "showarrow": False, "font": {"size": 11, "color": "white"}}]


def _middle(place: int) -> float:
    return place + BAND / 2


def head_parts(parts: NDArray[np.floating], names: Sequence[str], *, title: str = "") -> Figure:
    """Draws the vectors that add up to a sublayer's output, one a row, on one scale centred on 0.

    `parts`: one row per head (and bias), and their sum as the last row [rows, d_model].
    """
    words = texts()
    values = np.ascontiguousarray(parts, dtype=np.float32)
    if values.ndim != 2 or len(values) != len(names) or not len(values):
        raise ValueError(f"{len(names)} names do not fit parts of shape {values.shape}")
    end = reach(values)
    figure = Figure().add_heatmap(
        z=values,
        ygap=2,
        **signed(end),
        colorbar={"title": {"text": safe(words["value"])}, "thickness": 14},
        hovertemplate=fill(words["part_value"], row="%{y}", column="%{x}", value="%{z:.4f}"),
    )
    frame(figure, title, height=110 + 26 * len(names))
    figure.add_shape(
        type="line",
        xref="paper",
        x0=0,
        x1=1,
        y0=len(names) - 1.5,
        y1=len(names) - 1.5,
        line={"width": 2, "color": "rgba(128,128,128,0.9)"},
    )
    name_rows(figure, names)
    figure.update_xaxes(title=safe(words["column"]), showgrid=False)
    return figure


def shared_heads(n_heads: int, n_kv_heads: int, *, chosen: int | None = None, title: str = "") -> Figure:
    """Draws query heads above, key/value heads below, and a line from each query head to the one it reads; one thicker."""
    words = texts()
    if n_kv_heads < 1 or n_heads % n_kv_heads:
        raise ValueError(f"{n_heads} query heads cannot share {n_kv_heads} key/value heads evenly")
    each = n_heads // n_kv_heads
    group = np.arange(n_heads) // each
    above = np.arange(n_heads, dtype=np.float32)
    below = (np.arange(n_kv_heads, dtype=np.float32) + 0.5) * each - 0.5
    colours = [QUALITATIVE[g % len(QUALITATIVE)] for g in range(n_kv_heads)]
    figure = Figure()
    for head in range(n_heads):
        figure.add_scatter(
            x=np.array([above[head], below[group[head]]], dtype=np.float32),
            y=np.array([1.0, 0.0], dtype=np.float32),
            mode="lines",
            hoverinfo="skip",
            line={"color": colours[group[head]], "width": 6 if head == chosen else 2.5},
        )
    readers = [", ".join(map(str, np.flatnonzero(group == g))) for g in range(n_kv_heads)]
    hovers = (
        [words["query_head"].format(head=head, group=group[head]) for head in range(n_heads)],
        [words["group_head"].format(group=g, heads=readers[g]) for g in range(n_kv_heads)],
    )
    size = int(max(10, min(30, 210 / n_heads)))  # so that they stay apart on a phone
    for x, y, symbol, fills, hover in (
        (above, 1.0, "circle", [colours[g] for g in group], hovers[0]),
        (below, 0.0, "square", colours, hovers[1]),
    ):
        figure.add_scatter(
            x=x,
            y=np.full(len(x), y, dtype=np.float32),
            mode="markers+text" if size >= 17 else "markers",
            text=[str(i) for i in range(len(x))],
            textfont={"color": "white", "size": 13},
            marker={"size": size, "symbol": symbol, "color": fills},
            hovertext=[safe(text) for text in hover],
            hovertemplate="%{hovertext}<extra></extra>",
        )
    figure.says = words["sharing"].format(heads=n_heads, groups=n_kv_heads)
    frame(figure, title, height=240)
    figure.update_xaxes(visible=False, range=[-0.8, n_heads - 0.2])
    figure.update_yaxes(
        tickvals=[0, 1], ticktext=[safe(words["groups"]), safe(words["queries"])], range=[-0.35, 1.35], showgrid=False
    )
    return figure
