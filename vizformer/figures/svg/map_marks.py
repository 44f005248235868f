"""Maps on paper: their cells, and the numbers in them."""

import base64
import io
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vizformer.figures.svg.axes import SIZE, Axis, letters, plain, shades, tag

MOST_CELLS = 128 * 128  # cells that a file has as squares; a map of more is a picture of one pixel for each

Trace = Mapping[str, Any]


def heatmap(trace: Trace, x: Axis, y: Axis, most_cells: int = MOST_CELLS) -> str:
    """The cells of a map, row after row; where there is no number there is no cell."""
    values = np.asarray(trace["z"], dtype=float)
    (columns, column_step), (rows, row_step) = places(trace, x), places(trace, y)
    wide, tall = _size(column_step, x), _size(row_step, y)
    low, high = ends(trace)
    colours = shades((values - low) / (high - low), trace["colorscale"])
    seen = np.isfinite(values)
    if values.size > most_cells:
        return _pixels(colours, seen, x.px(columns), y.px(rows), wide, tall)
    wide, tall = wide - trace.get("xgap", 0), tall - trace.get("ygap", 0)
    left, top = x.px(columns) - wide / 2, y.px(rows) - tall / 2
    drawn = []
    for row, column in zip(*np.nonzero(seen), strict=True):
        red, green, blue, opacity = colours[row, column]
        drawn.append(
            tag(
                "rect",
                x=float(left[column]),
                y=float(top[row]),
                width=float(wide),
                height=float(tall),
                fill=f"#{round(red):02x}{round(green):02x}{round(blue):02x}",
                fill_opacity=None if opacity == 1 else float(opacity),
            )
        )
    cells = tag("g", *drawn, class_="cells", opacity=trace.get("opacity"))
    return cells + _printed(trace, values, colours, x.px(columns), y.px(rows))


def places(trace: Trace, axis: Axis) -> tuple[NDArray[np.floating], float]:
    """The middles of a map's columns (or rows) and the length of one, in the units of their axis.

    As in Plotly's schema the trace gives the middles, or the edges, of which there is one more.
    """
    values = trace.get("x" if axis.across else "y")
    count = np.shape(trace["z"])[1 if axis.across else 0]
    at = np.arange(count, dtype=float) if values is None else axis.numbers(values)
    step = float(np.diff(at).min()) if len(at) > 1 else 1.0
    return (at[:-1] + at[1:]) / 2 if len(at) > count else at, step


def ends(trace: Trace) -> tuple[float, float]:
    """The numbers at the two ends of a map's colours."""
    values = np.asarray(trace["z"], dtype=float)
    found = values[np.isfinite(values)]
    low, high = trace.get("zmin"), trace.get("zmax")
    low = low if low is not None else found.min() if found.size else 0.0
    high = high if high is not None else found.max() if found.size else 1.0
    return float(low), float(high) if high > low else float(low) + 1.0


def of_points(trace: Trace) -> dict[str, Any]:
    """The numbers that colour the points of a trace, as a map has its own."""
    marker = trace["marker"]
    given = {"zmin": marker.get("cmin"), "zmax": marker.get("cmax"), "colorbar": marker.get("colorbar", {})}
    return {"z": marker["color"], "colorscale": marker["colorscale"], **given}


def _size(step: float, axis: Axis) -> float:
    """Converts a length along an axis to px."""
    return abs(float(axis.px(step) - axis.px(0.0)))


def _pixels(
    colours: NDArray[np.floating],
    seen: NDArray[np.bool_],
    across: NDArray[np.floating],
    down: NDArray[np.floating],
    wide: float,
    tall: float,
) -> str:
    from PIL import Image

    colours = colours * [1, 1, 1, 255]
    colours[~seen] = 0
    if across[-1] < across[0]:
        colours = colours[:, ::-1]
    if down[-1] < down[0]:
        colours = colours[::-1]
    file = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(colours.round().astype(np.uint8)), "RGBA").save(file, "PNG")
    return tag(
        "image",
        x=float(across.min() - wide / 2),
        y=float(down.min() - tall / 2),
        width=wide * len(across),
        height=tall * len(down),
        preserveAspectRatio="none",
        style="image-rendering: pixelated",
        href=f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}",
    )


def _printed(
    trace: Trace,
    values: NDArray[np.floating],
    colours: NDArray[np.floating],
    across: NDArray[np.floating],
    down: NDArray[np.floating],
) -> str:
    """The numbers or texts in the cells, in black or white, whichever is easier to read."""
    pattern = trace.get("texttemplate")
    if not pattern:
        return ""
    texts, size = trace.get("text"), trace.get("textfont", {}).get("size", SIZE - 1)
    drawn = []
    for row, column in zip(*np.nonzero(np.isfinite(values)), strict=True):
        said = filled(pattern, values[row, column], "" if texts is None else str(texts[row][column]))
        light = float(np.dot(colours[row, column, :3], [0.299, 0.587, 0.114])) > 140 or colours[row, column, 3] < 0.5
        at = float(across[column]), float(down[row])
        drawn += [
            letters(
                one, at[0], at[1] + 1.2 * size * i, size=size, anchor="middle", colour="black" if light else "white"
            )
            for i, one in enumerate(plain(said))
        ]
    return tag("g", *drawn) if drawn else ""


def filled(pattern: str, value: float, text: str) -> str:
    """Plotly's "%{z:.2f}" and "%{text}" with what they stand for."""
    said = re.sub(r"%\{z(?::([^}]*))?\}", lambda found: format(value, found[1] or "g"), pattern)
    return said.replace("%{text}", text)
