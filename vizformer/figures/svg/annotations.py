"""Draws what is around a plot: shapes, annotations, colour bar and legend."""

from collections.abc import Mapping, Sequence
from typing import Any

from vizformer.figures.svg.axes import Axis, line, nice_step
from vizformer.figures.svg.bar_marks import HATCHES
from vizformer.figures.svg.ink import LETTERS, SIZE, letters, number, paint, plain, tag, width_of
from vizformer.figures.svg.line_marks import point, trace_colour
from vizformer.figures.svg.map_marks import ends, of_points

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
