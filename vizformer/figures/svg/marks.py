"""What the traces of a figure look like on paper: cells, lines, points, bars."""

import base64
import io
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vizformer.figures.style import QUALITATIVE
from vizformer.figures.svg.axes import Axis, dashes, line
from vizformer.figures.svg.ink import LETTERS, SIZE, letters, paint, plain, shades, tag

MOST_CELLS = 128 * 128
"""Cells that are drawn as squares; a map of more is a picture of one pixel for each."""

Trace = Mapping[str, Any]

# --- maps -------------------------------------------------------------------------------------------------------------


def heatmap(trace: Trace, x: Axis, y: Axis) -> str:
    """The cells of a map, row after row; where there is no number there is no cell."""
    values = np.asarray(trace["z"], dtype=float)
    columns, rows = places(trace, x), places(trace, y)
    low, high = ends(trace)
    colours = shades((values - low) / (high - low), trace["colorscale"])
    seen = np.isfinite(values)
    if values.size > MOST_CELLS:
        return _pixels(colours, seen, x, y, columns, rows)
    wide, tall = _size(columns, x) - trace.get("xgap", 0), _size(rows, y) - trace.get("ygap", 0)
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
    return tag("g", *drawn, class_="cells") + _printed(trace, values, colours, x.px(columns), y.px(rows))


def places(trace: Trace, axis: Axis) -> NDArray[np.floating]:
    """Where the columns (or rows) of a map stand, in the units of their axis."""
    name = "x" if axis.across else "y"
    values = trace.get(name)
    count = np.shape(trace["z"])[1 if axis.across else 0]
    return np.arange(count, dtype=float) if values is None else axis.numbers(values)


def ends(trace: Trace) -> tuple[float, float]:
    """The numbers at the two ends of a map's colours."""
    values = np.asarray(trace["z"], dtype=float)
    found = values[np.isfinite(values)]
    low = trace.get("zmin", found.min() if found.size else 0.0)
    high = trace.get("zmax", found.max() if found.size else 1.0)
    return float(low), float(high) if high > low else float(low) + 1.0


def _size(at: NDArray[np.floating], axis: Axis) -> float:
    """The px of a cell from one edge to the other."""
    step = float(np.diff(at).min()) if len(at) > 1 else 1.0
    return abs(float(axis.px(step) - axis.px(0.0)))


def _pixels(
    colours: NDArray[np.floating],
    seen: NDArray[np.bool_],
    x: Axis,
    y: Axis,
    columns: NDArray[np.floating],
    rows: NDArray[np.floating],
) -> str:
    from PIL import Image

    colours = colours * [1, 1, 1, 255]
    colours[~seen] = 0
    if x.end < x.start:
        colours = colours[:, ::-1]
    if y.px(rows[-1]) < y.px(rows[0]):
        colours = colours[::-1]
    file = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(colours.round().astype(np.uint8)), "RGBA").save(file, "PNG")
    wide, tall = _size(columns, x), _size(rows, y)
    return tag(
        "image",
        x=float(x.px(columns).min() - wide / 2),
        y=float(y.px(rows).min() - tall / 2),
        width=wide * len(columns),
        height=tall * len(rows),
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


# --- lines and points -------------------------------------------------------------------------------------------------


def scatter(trace: Trace, x: Axis, y: Axis, *, below: "NDArray[np.floating] | None" = None, number: int = 0) -> str:
    """Lines, points and texts.

    Args:
        below: [2, points] in px, the line down to which the area is filled, where it is.
        number: of the trace, which gives it a colour where it names none.
    """
    points = np.stack([x.px(x.numbers(trace["x"])), y.px(y.numbers(trace["y"]))])
    mode = trace.get("mode", "lines")
    colour = trace_colour(trace, number)
    drawn = []
    if below is not None:
        area = np.concatenate([stepped(trace, points), stepped(trace, below)[:, ::-1]], axis=1)
        fill, opacity = paint(trace["fillcolor"]) if "fillcolor" in trace else (paint(colour)[0], 0.5)
        drawn.append(tag("polygon", points=_written(area), fill=fill, fill_opacity=opacity, stroke="none"))
    if "lines" in mode:
        stroke, opacity = paint(colour)
        width = trace.get("line", {}).get("width", 2)
        for part in _unbroken(stepped(trace, points)):
            drawn.append(
                tag(
                    "polyline",
                    points=_written(part),
                    fill="none",
                    stroke=stroke,
                    stroke_opacity=opacity,
                    stroke_width=width,
                    stroke_linejoin="round",
                    stroke_dasharray=dashes(trace.get("line", {}).get("dash"), width),
                )
            )
    if "markers" in mode:
        drawn.append(_points(trace, points, colour))
    if "text" in mode:
        drawn.append(_texts(trace, points))
    return tag("g", *drawn, opacity=trace.get("opacity")) if drawn else ""


def stepped(trace: Trace, points: NDArray[np.floating]) -> NDArray[np.floating]:
    """The points of a line that goes across first and then up, where it is of that shape."""
    if trace.get("line", {}).get("shape") != "hv":
        return points
    across, up = np.repeat(points[0], 2)[1:], np.repeat(points[1], 2)[:-1]
    return np.stack([across, up])


def trace_colour(trace: Trace, number: int) -> str:
    """The colour of a trace: of its line, else of its points, else the next of the palette."""
    for part in ("line", "marker"):
        colour = trace.get(part, {}).get("color")
        if isinstance(colour, str):
            return colour
    return QUALITATIVE[number % len(QUALITATIVE)]


def _unbroken(points: NDArray[np.floating]) -> list[NDArray[np.floating]]:
    gaps = np.nonzero(~np.isfinite(points).all(axis=0))[0]
    parts = np.split(points, gaps, axis=1)
    found = [parts[0], *(part[:, 1:] for part in parts[1:])]
    return [part for part in found if part.shape[1] > 1]


def _written(points: NDArray[np.floating]) -> str:
    kept = points[:, np.isfinite(points).all(axis=0)]
    return " ".join(f"{a:.2f},{b:.2f}" for a, b in kept.T.tolist())


def _points(trace: Trace, points: NDArray[np.floating], colour: str) -> str:
    marker = trace.get("marker", {})
    edge, drawn = marker.get("line", {}), []
    for i, (a, b) in enumerate(points.T.tolist()):
        if not (math.isfinite(a) and math.isfinite(b)):
            continue
        size, symbol = float(_each(marker.get("size", 6), i)), _each(marker.get("symbol", "circle"), i)
        own = str(_each(marker.get("color", colour), i))
        turn = 0.0
        if symbol == "arrow" and i:
            turn = math.degrees(math.atan2(b - points[1, i - 1], a - points[0, i - 1])) + 90
        elif symbol == "arrow":
            continue  # the arrow's own beginning
        drawn.append(point(symbol, a, b, size, own, edge=edge, turn=turn))
    return tag("g", *drawn, opacity=marker.get("opacity")) if drawn else ""


def point(
    symbol: str, a: float, b: float, size: float, colour: str, *, edge: Mapping[str, Any], turn: float = 0.0
) -> str:
    """One point of a figure."""
    half = size / 2
    fill, opacity = paint(colour)
    look: dict[str, Any] = {"fill": fill, "fill_opacity": opacity}
    if edge.get("width"):
        look |= {"stroke": paint(str(edge.get("color", "#444444")))[0], "stroke_width": edge["width"]}
    if symbol == "line-ne":
        return line(
            a - half, b + half, a + half, b - half, colour=edge.get("color", "#888888"), width=edge.get("width", 1)
        )
    if symbol == "circle-open":
        look = {"fill": "none", "stroke": fill, "stroke_opacity": opacity, "stroke_width": 1.5}
    if symbol in ("circle", "circle-open"):
        return tag("circle", cx=a, cy=b, r=half, **look)
    if symbol == "square":
        return tag("rect", x=a - half, y=b - half, width=size, height=size, **look)
    corners = {"diamond": ((0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0)), "arrow": ((0, 0), (0.8, 2), (-0.8, 2))}
    if symbol not in corners:
        raise ValueError(f"no point that a file knows: {symbol!r}")
    written = " ".join(f"{a + half * p:.2f},{b + half * q:.2f}" for p, q in corners[symbol])
    return tag("polygon", points=written, transform=f"rotate({turn:.1f} {a:.2f} {b:.2f})" if turn else None, **look)


def _texts(trace: Trace, points: NDArray[np.floating]) -> str:
    font, marker, drawn = trace.get("textfont", {}), trace.get("marker", {}), []
    size = font.get("size", SIZE)
    for i, (a, b) in enumerate(points.T.tolist()):
        text = _each(trace.get("text", ""), i)
        if not text or not (math.isfinite(a) and math.isfinite(b)):
            continue
        upright, __, across = str(_each(trace.get("textposition", "middle center"), i)).partition(" ")
        room = float(_each(marker.get("size", 0), i)) / 2 + 3 if "markers" in trace.get("mode", "") else 0.0
        rows = plain(str(text))
        side = {"left": -1, "right": 1}.get(across, 0)
        shift = {"top": -room - size * (len(rows) - 0.5), "bottom": room + size * 0.5}.get(
            upright, -size * 0.6 * (len(rows) - 1)
        )
        drawn += [
            letters(
                said,
                a + side * room,
                b + shift + 1.2 * size * row,
                size=size,
                anchor={-1: "end", 0: "middle", 1: "start"}[side],
                colour=str(_each(font.get("color", LETTERS), i)),
            )
            for row, said in enumerate(rows)
        ]
    return "".join(drawn)


def _each(value: Any, index: int) -> Any:
    """What is said of one point: of each its own, or the same of all."""
    return value[index] if isinstance(value, list | tuple | np.ndarray) else value


# --- bars -------------------------------------------------------------------------------------------------------------


def bars(traces: Sequence[Trace], numbers: Sequence[int], x: Axis, y: Axis, layout: Mapping[str, Any]) -> str:
    """All the bars of one pair of axes: beside each other, on top of each other, or one over the other."""
    mode, gap = layout.get("barmode", "group"), float(layout.get("bargap", 0.2))
    reached: dict[tuple[float, bool], float] = {}
    drawn = []
    for order, (trace, number) in enumerate(zip(traces, numbers, strict=True)):
        along, lengths = bar_numbers(trace, x, y)
        step = min((float(one) for one in np.diff(np.unique(along)) if one > 0), default=1.0)
        share = step * (1 - gap) / (len(traces) if mode == "group" else 1)
        shift = share * (order - (len(traces) - 1) / 2) if mode == "group" else 0.0
        for i, (at, length) in enumerate(zip(along.tolist(), lengths.tolist(), strict=True)):
            if not math.isfinite(length):
                continue
            base = reached.get((at, length < 0), 0.0) if mode == "stack" else 0.0
            reached[at, length < 0] = base + length
            drawn.append(_bar(trace, i, at + shift, share, base, base + length, x, y, trace_colour(trace, number)))
    return "".join(drawn)


def bar_numbers(trace: Trace, x: Axis, y: Axis) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """Where each bar of a trace stands, and how long it is."""
    flat = trace.get("orientation") == "h"
    along, lengths = (y.numbers(trace["y"]), trace["x"]) if flat else (x.numbers(trace["x"]), trace["y"])
    return along, np.array([np.nan if one is None else float(one) for one in lengths], dtype=float)


def _bar(trace: Trace, i: int, at: float, share: float, low: float, high: float, x: Axis, y: Axis, colour: str) -> str:
    flat = trace.get("orientation") == "h"
    places, lengths = (y, x) if flat else (x, y)
    across = sorted(float(places.px(at + side * share / 2)) for side in (-1, 1))
    if lengths.log:
        low, high = lengths.low, math.log10(high) if high > 0 else lengths.low
    a, b = float(lengths.px(low)), float(lengths.px(high))
    long = sorted((a, b))
    box = (long, across) if flat else (across, long)
    marker = trace.get("marker", {})
    fill, opacity = paint(str(_each(marker.get("color", colour), i)))
    edge = marker.get("line", {})
    look = {
        "x": box[0][0],
        "y": box[1][0],
        "width": box[0][1] - box[0][0],
        "height": box[1][1] - box[1][0],
        "stroke": paint(str(edge["color"]))[0] if edge.get("color") and edge.get("width") else None,
        "stroke_width": edge.get("width") if edge.get("color") else None,
    }
    drawn = tag("rect", fill=fill, fill_opacity=opacity, **look)
    if shape := _each(marker.get("pattern", {}).get("shape", ""), i):
        drawn += tag("rect", fill=f"url(#{HATCHES[str(shape)]})", **look)
    if text := _each(trace.get("text", ""), i):
        drawn += _bar_text(trace, str(text), flat, (across[0] + across[1]) / 2, b, 1 if b >= a else -1)
    return drawn


def _bar_text(trace: Trace, text: str, flat: bool, middle: float, end: float, sign: int) -> str:
    size = trace.get("textfont", {}).get("size", SIZE - 1)
    if flat:
        return letters(plain(text)[0], end + 4 * sign, middle, size=size, anchor="start" if sign > 0 else "end")
    return letters(plain(text)[0], middle, end + sign * (size / 2 + 3), size=size, anchor="middle")


HATCHES = {"/": "hatch-lines", "x": "hatch-crosses", ".": "hatch-dots"}


def hatches() -> str:
    """The strokes over bars, which tell them apart without their colours."""
    stroke = {"stroke": "#333333", "stroke_width": 1, "fill": "none"}
    inside = {
        "/": tag("path", d="M0,7 L7,0", **stroke),
        "x": tag("path", d="M0,7 L7,0 M0,0 L7,7", **stroke),
        ".": tag("circle", cx=3.5, cy=3.5, r=1.1, fill="#333333"),
    }
    return "".join(
        tag("pattern", inside[shape], id=name, width=7, height=7, patternUnits="userSpaceOnUse")
        for shape, name in HATCHES.items()
    )
