"""Draws lines, points, texts, shapes, annotations, colour bar and legend as SVG."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vizformer.figures.style import QUALITATIVE
from vizformer.figures.svg.axes import (
    LETTERS,
    SIZE,
    Axis,
    dashes,
    letters,
    line,
    nice_step,
    number,
    paint,
    plain,
    shades,
    tag,
    width_of,
)
from vizformer.figures.svg.map_marks import ends, of_points

Trace = Mapping[str, Any]
GREY = "#808080"  # a point without a number

HATCHES = {"/": "hatch-lines", "x": "hatch-crosses", ".": "hatch-dots"}


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


# Draws bars and their hatching as SVG.
def bars(traces: Sequence[Trace], numbers: Sequence[int], x: Axis, y: Axis, layout: Mapping[str, Any]) -> str:
    """All the bars of one pair of axes: beside each other, on top of each other, or one over the other."""
    mode, gap = layout.get("barmode", "group"), float(layout.get("bargap", 0.2))
    reached: dict[tuple[float, bool], float] = {}
    drawn = []
    for order, (trace, nth) in enumerate(zip(traces, numbers, strict=True)):
        along, lengths = bar_numbers(trace, x, y)
        step = min((float(one) for one in np.diff(np.unique(along)) if one > 0), default=1.0)
        share = step * (1 - gap) / (len(traces) if mode == "group" else 1)
        shift = share * (order - (len(traces) - 1) / 2) if mode == "group" else 0.0
        for i, (at, length) in enumerate(zip(along.tolist(), lengths.tolist(), strict=True)):
            if not math.isfinite(length):
                continue
            base = reached.get((at, length < 0), 0.0) if mode == "stack" else 0.0
            reached[at, length < 0] = base + length
            drawn.append(_bar(trace, i, at + shift, share, base, base + length, x, y, trace_colour(trace, nth)))
    return "".join(drawn)


def bar_numbers(trace: Trace, x: Axis, y: Axis) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """The position and the length of each bar of a trace."""
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
    fill, opacity = paint(str(each(marker.get("color", colour), i)))
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
    if shape := each(marker.get("pattern", {}).get("shape", ""), i):
        drawn += tag("rect", fill=f"url(#{HATCHES[str(shape)]})", **look)
    if text := each(trace.get("text", ""), i):
        drawn += _bar_text(trace, str(text), flat, (across[0] + across[1]) / 2, b, 1 if b >= a else -1)
    return drawn


def _bar_text(trace: Trace, text: str, flat: bool, middle: float, end: float, sign: int) -> str:
    size = trace.get("textfont", {}).get("size", SIZE - 1)
    if flat:
        return letters(plain(text)[0], end + 4 * sign, middle, size=size, anchor="start" if sign > 0 else "end")
    return letters(plain(text)[0], middle, end + sign * (size / 2 + 3), size=size, anchor="middle")


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


# Draws what is around a plot: shapes, annotations, colour bar and legend.

BAR_ROOM = 78.0  # px that a scale of colours takes
ROW = 20.0  # px of a row of the legend

Axes = Mapping[str, Axis]
Box = tuple[float, float, float, float]  # of all plots together: left, top, right, bottom


def shape(said: Mapping[str, Any], axes: Axes, box: Box) -> str:
    """A line or a rectangle that the figure has beside its traces."""
    x0, x1 = (_place(said[name], said.get("xref", "x"), axes, box) for name in ("x0", "x1"))
    y0, y1 = (_place(said[name], said.get("yref", "y"), axes, box) for name in ("y0", "y1"))
    edge = said.get("line", {})
    width, colour = edge.get("width", 2), edge.get("color", "#444444")
    if said.get("type") == "line":
        return line(x0, y0, x1, y1, colour=colour, width=width, dash=edge.get("dash"))
    fill, opacity = paint(said["fillcolor"]) if said.get("fillcolor") else ("none", None)
    stroke, strength = paint(colour)
    return tag(
        "rect",
        x=min(x0, x1),
        y=min(y0, y1),
        width=abs(x1 - x0),
        height=abs(y1 - y0),
        fill=fill,
        fill_opacity=opacity,
        stroke=stroke if width else None,
        stroke_opacity=strength if width else None,
        stroke_width=width or None,
    )


def note(said: Mapping[str, Any], axes: Axes, box: Box) -> str:
    """A text at a place of the figure, with an arrow where it has one."""
    x = _place(said["x"], said.get("xref", "x"), axes, box, in_exponents=True) + said.get("xshift", 0)
    y = _place(said["y"], said.get("yref", "y"), axes, box, in_exponents=True) - said.get("yshift", 0)
    font, rows = said.get("font", {}), plain(said["text"])
    size = font.get("size", SIZE)
    drawn = ""
    if said.get("showarrow", True):
        at = (x + said.get("ax", 0), y + said.get("ay", -30))
        drawn = line(*at, x, y, colour=said.get("arrowcolor", LETTERS), width=1)
        drawn += point("circle", x, y, 4, said.get("arrowcolor", LETTERS), edge={})
        x, y = at
    shift = {"top": 0.6 * size, "bottom": -size * (1.2 * len(rows) - 0.6)}.get(
        said.get("yanchor", "middle"), -0.6 * size * (len(rows) - 1)
    )
    anchor = {"left": "start", "right": "end"}.get(said.get("xanchor", "center"), "middle")
    return drawn + "".join(
        letters(text, x, y + shift + 1.2 * size * row, size=size, anchor=anchor, colour=font.get("color", LETTERS))
        for row, text in enumerate(rows)
    )


def _place(value: Any, ref: str, axes: Axes, box: Box, *, in_exponents: bool = False) -> float:
    """The px of a place that is said in the units of an axis, or as a share of the plot ("paper", "y domain").

    On a logarithmic axis Plotly's shapes give values, and its notes exponents of ten (`in_exponents`).
    """
    if ref == "paper":
        raise LookupError("whether it is across or upright is said by `paper`")
    name, __, domain = ref.partition(" ")
    axis = axes[name]
    if domain:
        return axis.start + float(value) * (axis.end - axis.start)
    return float(axis.px(float(value) if in_exponents and axis.log else axis.numbers([value])[0]))


def paper(said: Mapping[str, Any], axes: Axes, box: Box) -> dict[str, Any]:
    """A shape or annotation with its "paper" coordinates converted to the coordinates of an axis."""
    found = dict(said)
    for names, ref, first, length in (
        (("x", "x0", "x1"), "xref", box[0], box[2] - box[0]),
        (("y", "y0", "y1"), "yref", box[3], box[1] - box[3]),
    ):
        if said.get(ref) == "paper":
            axis = axes[ref[0]]
            for name in names:
                if name in said:
                    px = first + float(said[name]) * length
                    found[name] = (px - axis.start) / (axis.end - axis.start)
            found[ref] = f"{ref[0]} domain"
    return found


def colour_bars(traces: Sequence[Mapping[str, Any]], box: Box) -> str:
    """A scale for each map and each trace of points that has one of its own, to the right of everything."""
    drawn = []
    for index, trace in enumerate(scaled(traces)):
        x, top, bottom = box[2] + 14 + index * BAR_ROOM, box[1] + 16, box[3]
        low, high = ends(trace)
        name, thick = f"scale-{index}", trace.get("colorbar", {}).get("thickness", 14)
        stops = "".join(
            tag("stop", offset=number(float(place)), stop_color=paint(colour)[0])
            for place, colour in trace["colorscale"]
        )
        drawn.append(tag("defs", tag("linearGradient", stops, id=name, x1=0, y1=1, x2=0, y2=0)))
        drawn.append(tag("rect", x=x, y=top, width=thick, height=bottom - top, fill=f"url(#{name})"))
        step = nice_step(high - low, min(5, max(1, int((bottom - top) / 24))))
        first = -(-low // step)
        for i in range(int((high - first * step) / step + 1e-9) + 1):
            value = (first + i) * step
            y = bottom - (value - low) / (high - low) * (bottom - top)
            drawn.append(letters(f"{value:.6g}".replace("-", "−"), x + thick + 4, y, size=SIZE - 1))
        if title := trace.get("colorbar", {}).get("title", {}).get("text"):
            rows = plain(title)
            drawn += [
                letters(row, x, top - 14 - 13 * (len(rows) - 1 - at), size=SIZE - 1) for at, row in enumerate(rows)
            ]
    return "".join(drawn)


def scaled(traces: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The maps whose colours are explained by a scale, and the points."""
    maps = [trace for trace in traces if trace["type"] == "heatmap" and trace.get("showscale", True)]
    return [*maps, *(of_points(trace) for trace in traces if trace.get("marker", {}).get("colorbar"))]


def legend_rows(
    traces: Sequence[Mapping[str, Any]], layout: Mapping[str, Any], width: float
) -> list[list[tuple[int, Mapping[str, Any]]]]:
    """The traces that the legend names, with their numbers, in rows of at most `width` px."""
    if not layout.get("showlegend", len(traces) > 1):
        return []
    named, groups = [], set()
    for number_, trace in enumerate(traces):
        group = trace.get("legendgroup")
        if trace.get("name") and trace.get("showlegend", True) and trace["type"] != "heatmap" and group not in groups:
            named.append((number_, trace))
            groups.add(group if group is not None else object())
    if layout.get("legend", {}).get("traceorder") == "reversed":
        named.reverse()
    rows: list[list[tuple[int, Mapping[str, Any]]]] = []
    used = width
    for one in named:
        needed = entry_width(one[1])
        if used + needed > width:
            rows.append([])
            used = 0.0
        rows[-1].append(one)
        used += needed
    return rows


def entry_width(trace: Mapping[str, Any]) -> float:
    return 44.0 + width_of(plain(trace["name"])[0], SIZE - 1)


def legend(rows: Sequence[Sequence[tuple[int, Mapping[str, Any]]]], x: float, y: float) -> str:
    """Draws the legend with its upper left corner at (x, y)."""
    drawn = []
    for index, row in enumerate(rows):
        at, middle = x, y + index * ROW + ROW / 2
        for number_, trace in row:
            drawn.append(_sign(trace, trace_colour(trace, number_), at, middle))
            drawn.append(letters(plain(trace["name"])[0], at + 30, middle, size=SIZE - 1))
            at += entry_width(trace)
    return "".join(drawn)


def _sign(trace: Mapping[str, Any], colour: str, x: float, y: float) -> str:
    marker = trace.get("marker", {})
    if trace["type"] == "bar":
        own = marker.get("color", colour)
        fill, opacity = paint(own if isinstance(own, str) else colour)
        drawn = tag("rect", x=x + 8, y=y - 6, width=14, height=12, fill=fill, fill_opacity=opacity)
        shape_ = marker.get("pattern", {}).get("shape", "")
        if isinstance(shape_, str) and shape_:
            drawn += tag("rect", x=x + 8, y=y - 6, width=14, height=12, fill=f"url(#{HATCHES[shape_]})")
        return drawn
    drawn, mode, edge = "", trace.get("mode", "lines"), trace.get("line", {})
    if "lines" in mode:
        drawn += line(x, y, x + 24, y, colour=colour, width=edge.get("width", 2), dash=edge.get("dash"))
    if "markers" in mode:
        symbol, own = marker.get("symbol", "circle"), marker.get("color", colour)
        drawn += point(
            symbol if isinstance(symbol, str) else "circle",
            x + 12,
            y,
            7,
            own if isinstance(own, str) else colour,
            edge=marker.get("line", {}),
        )
    return drawn
