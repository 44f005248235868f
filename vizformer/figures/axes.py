"""Axes with names: integer positions below, so that equal tokens stay apart, and the names as tick texts.

A hover can only name what its axis has a tick for.  Where there are too many names to print, the axes of the data
carry them all, unprinted, and a second pair of axes on top of them prints some.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from vizformer.figures.figure import Figure
from vizformer.figures.style import safe

MOST_LABELS = 48
LONGEST_LABEL = 16

Ticks = tuple[Sequence[float], Sequence[str]]


def name_axes(
    figure: Figure,
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    row_ticks: Ticks | None = None,
    column_ticks: Ticks | None = None,
    row_title: str = "",
    column_title: str = "",
    square: bool = True,
) -> None:
    """Names the rows (row 0 on top) and the columns of a map.

    `row_ticks`, `column_ticks`: (positions, names) to print, where these are not the names themselves.
    """
    y = {**_axis(rows), "range": [len(rows) - 0.5, -0.5]}
    x = {**_axis(columns), "range": [-0.5, len(columns) - 0.5], "side": "top"}
    if square:
        y |= {"scaleanchor": "x", "constrain": "domain"}
        x |= {"constrain": "domain"}
    row_ticks = row_ticks or _printed(rows)
    column_ticks = column_ticks or _printed(columns)
    if row_ticks is None and column_ticks is None:
        y["title"], x["title"] = {"text": safe(row_title)}, {"text": safe(column_title)}
        figure.update_layout(xaxis=x, yaxis=y)
        return
    figure.add_scatter(x=[None], y=[None], xaxis="x2", yaxis="y2", hoverinfo="skip", showlegend=False)
    over_y = {**_axis(rows, row_ticks), "overlaying": "y", "matches": "y", "title": {"text": safe(row_title)}}
    over_x = {**_axis(columns, column_ticks), "overlaying": "x", "matches": "x", "title": {"text": safe(column_title)}}
    silent = {"showticklabels": False, "ticks": ""}  # a mark for each of 512 names takes the browser 100 ms
    figure.update_layout(xaxis={**x, **silent}, yaxis={**y, **silent}, xaxis2={**over_x, "side": "top"}, yaxis2=over_y)


def _axis(names: Sequence[str], ticks: Ticks | None = None) -> dict[str, Any]:
    places, texts = ticks or (np.arange(len(names)), names)
    return {
        "tickvals": places,
        "ticktext": [safe(text) for text in texts],
        "showgrid": False,
        "ticks": "outside",
        "ticklen": 4,
        "tickcolor": "rgba(0,0,0,0)",
    }


def _printed(names: Sequence[str]) -> Ticks | None:
    """Every k-th name, where there are too many to print, and long ones cut; None to print them as they are."""
    if len(names) <= MOST_LABELS and all(len(name) <= LONGEST_LABEL for name in names):
        return None
    step = -(-len(names) // MOST_LABELS)
    short = [name if len(name) <= LONGEST_LABEL else name[: LONGEST_LABEL - 1] + "…" for name in names[::step]]
    return list(range(0, len(names), step)), short


def name_rows(figure: Figure, names: Sequence[str], **properties: Any) -> None:
    """Names the rows of a figure that is no map, row 0 on top."""
    figure.update_yaxes(
        tickvals=np.arange(len(names), dtype=np.int32),
        ticktext=[safe(name) for name in names],
        **{"range": [len(names) - 0.5, -0.5], "showgrid": False} | properties,
    )
