"""Where each head's slice goes: the vectors of one token, cut by head, and what each head adds."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vizformer.figures.axes import name_rows
from vizformer.figures.figure import Figure, frame
from vizformer.figures.style import QUALITATIVE, fill, reach, safe, signed, texts

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
