"""Draws lines, points and texts as SVG."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vizformer.figures.style import QUALITATIVE
from vizformer.figures.svg.axes import Axis, dashes, line
from vizformer.figures.svg.ink import LETTERS, SIZE, letters, paint, plain, shades, tag
from vizformer.figures.svg.map_marks import ends, of_points

Trace = Mapping[str, Any]
GREY = "#808080"  # a point without a number


def scatter(trace: Trace, x: Axis, y: Axis, *, below: "NDArray[np.floating] | None" = None, number: int = 0) -> str:
    """Lines, points and texts.

    `below`: [2, points] in px, the line down to which the area is filled, where it is.
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
    if "colorscale" in marker:
        low, high = ends(of_points(trace))
        values = (np.asarray(marker["color"], dtype=float) - low) / (high - low)
        colours = shades(np.nan_to_num(values), marker["colorscale"]).round().astype(int).tolist()
        known = zip(np.isfinite(values).tolist(), colours, strict=True)
        marker = {
            **marker,
            "color": [
                f"rgb({red},{green},{blue})" if is_number else GREY for is_number, (red, green, blue, _) in known
            ],
        }
    edge, drawn = marker.get("line", {}), []
    for i, (a, b) in enumerate(points.T.tolist()):
        if not (math.isfinite(a) and math.isfinite(b)):
            continue
        size, symbol = float(each(marker.get("size", 6), i)), each(marker.get("symbol", "circle"), i)
        own = str(each(marker.get("color", colour), i))
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
        text = each(trace.get("text", ""), i)
        if not text or not (math.isfinite(a) and math.isfinite(b)):
            continue
        upright, __, across = str(each(trace.get("textposition", "middle center"), i)).partition(" ")
        room = float(each(marker.get("size", 0), i)) / 2 + 3 if "markers" in trace.get("mode", "") else 0.0
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
                colour=str(each(font.get("color", LETTERS), i)),
            )
            for row, said in enumerate(rows)
        ]
    return "".join(drawn)


def each(value: Any, index: int) -> Any:
    """The property of one point: an element of a list, or the one value for all points."""
    return value[index] if isinstance(value, list | tuple | np.ndarray) else value
