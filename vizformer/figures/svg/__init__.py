"""A figure as an SVG: for a slide or a paper, without a browser and without the internet.

    Path("head.svg").write_text(svg(figure, caption="zh-en · encoder.0.self, head 3 · 我有一只猫。"))

It draws the part of Plotly's schema that our figures use, and refuses what it does not know.  Letters stay letters: they can
be searched for, and the fonts of every script are named one after the other.  What is interactive (hovers, zooming) is left
out.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Protocol
from xml.sax.saxutils import escape

import numpy as np
from numpy.typing import NDArray

from vizformer.figures.svg import map_marks, marks
from vizformer.figures.svg.axes import FONTS, LETTERS, SIZE, Axis, letters, plain, printable, tag, width_of, wrapped

__all__ = ["svg"]

WIDTH = 760.0  # px
_TITLE, _CAPTION = 15, 11  # px of letters
_EDGE = 10.0  # px left free on every side
_NARROW = 420.0  # px that a figure takes at least, for its title and its caption
_KNOWN = ("heatmap", "scatter", "bar")


class Drawable(Protocol):
    """A figure: the traces and the layout of Plotly's schema, and its title."""

    @property
    def parts(self) -> tuple[list[dict[str, Any]], dict[str, Any]]: ...

    @property
    def title(self) -> str: ...


def svg(figure: Drawable, *, caption: str = "", width: float = WIDTH, most_cells: int = map_marks.MOST_CELLS) -> str:
    """The figure as the text of an SVG file, on white.

    Args:
        caption: what stands below it, and in the file as its description; plain text.
        width: px.
        most_cells: of a map that are drawn as squares; one of more is a picture of one pixel for each.

    Raises:
        ValueError: the figure has a kind of trace, of point or of colour that is not known here.
    """
    traces, layout = figure.parts
    if unknown := sorted({str(trace["type"]) for trace in traces} - set(_KNOWN)):
        raise ValueError(f"a file knows no {', '.join(unknown)}")
    axes, titles, scales = _axes(traces, layout), plain(figure.title), len(marks.scaled(traces))
    title = " ".join(titles)
    plot = float(layout.get("height", 450))
    box = _lay(axes, _box(axes, width, plot, len(titles) if title else 0, scales, _beyond(traces)))
    rows = marks.legend_rows(traces, layout, width - 2 * _EDGE)
    if not rows:  # square cells may have left room on the right
        width = max(box[2] + scales * marks.BAR_ROOM + 2 * _EDGE, min(width, _NARROW))
    said = wrapped(caption, width - 2 * _EDGE, _CAPTION)
    below = len(rows) * marks.ROW + len(said) * 1.3 * _CAPTION + 14.0
    height = plot + below
    inside = [
        tag("title", escape(printable(title or caption))),
        tag("desc", escape(printable(caption))) if caption else "",
        tag("defs", marks.hatches(), *_clips(axes)),
        tag("rect", width=width, height=height, fill="white"),
        *(letters(line, _EDGE, 22 + 20 * at, size=_TITLE, weight="bold") for at, line in enumerate(titles) if line),
        *(_image(one, axes) for one in layout.get("images", [])),
        *_drawn(traces, layout, axes, box, most_cells),
        marks.colour_bars(traces, box),
        marks.legend(rows, _EDGE, height - below + 6),
        *(
            letters(line, _EDGE, height - (len(said) - i) * 1.3 * _CAPTION, size=_CAPTION, colour="#555555")
            for i, line in enumerate(said)
        ),
    ]
    return tag(
        "svg",
        *inside,
        xmlns="http://www.w3.org/2000/svg",
        width=width,
        height=height,
        viewBox=f"0 0 {width:g} {height:g}",
        font_family=FONTS,
        font_size=SIZE,
        fill=LETTERS,
        role="img",
    )


def _drawn(
    traces: list[dict[str, Any]],
    layout: Mapping[str, Any],
    axes: dict[str, Axis],
    box: marks.Box,
    most_cells: int,
) -> list[str]:
    """Grid, shapes, traces, texts of the axes and notes, from the back to the front."""
    shapes = layout.get("shapes", [])
    found = [axis.grid(_other(axis, axes, traces)) for axis in axes.values()]
    found += [_shape(one, axes, box) for one in shapes if one.get("layer") == "below"]
    reached: dict[tuple[str, str], NDArray[np.floating]] = {}
    for pair in dict.fromkeys(_pair(trace) for trace in traces):
        x, y = axes[pair[0]], axes[pair[1]]
        here = [(number, trace) for number, trace in enumerate(traces) if _pair(trace) == pair]
        own = []
        if some := [(number, trace) for number, trace in here if trace["type"] == "bar"]:
            own.append(marks.bars([trace for _, trace in some], [number for number, _ in some], x, y, layout))
        for number, trace in here:
            if trace["type"] == "heatmap":
                own.append(map_marks.heatmap(trace, x, y, most_cells))
            elif trace["type"] == "scatter":
                own.append(_scatter(trace, number, x, y, reached, pair))
        free = any(trace.get("cliponaxis") is False for _, trace in here)
        found.append(tag("g", *own, clip_path=None if free else f"url(#plot-{pair[0]}-{pair[1]})") if any(own) else "")
    found += [axis.marks(_other(axis, axes, traces)) for axis in axes.values()]
    found += [_shape(one, axes, box) for one in shapes if one.get("layer") != "below"]
    return [
        *found,
        *(marks.note(marks.paper(one, axes, box), axes, box) for one in layout.get("annotations", [])),
    ]


def _image(said: Mapping[str, Any], axes: Mapping[str, Axis]) -> str:
    x, y = axes[said["xref"]], axes[said["yref"]]
    (left, right), (top, bottom) = (
        axis.px([said[axis.name], said[axis.name] + said[f"size{axis.name}"]]).tolist() for axis in (x, y)
    )
    size = {"width": right - left, "height": bottom - top}
    return tag("image", x=left, y=top, **size, preserveAspectRatio="none", href=said["source"])


def _shape(said: Mapping[str, Any], axes: dict[str, Axis], box: marks.Box) -> str:
    return marks.shape(marks.paper(said, axes, box), axes, box)


def _scatter(
    trace: dict[str, Any],
    number: int,
    x: Axis,
    y: Axis,
    reached: dict[tuple[str, str], NDArray[np.floating]],
    pair: tuple[str, str],
) -> str:
    """Lines and points; areas lie on what was drawn before them, stacked ones on its sum."""
    below = None
    values = y.numbers(trace["y"])
    if trace.get("stackgroup"):
        floor = reached.get(pair, np.zeros(len(values)))
        values = values + floor
        below = np.stack([x.px(x.numbers(trace["x"])), y.px(floor)])
        trace = {**trace, "y": values}
    elif trace.get("fill") == "tonexty" and pair in reached:
        below = np.stack([x.px(x.numbers(trace["x"])), y.px(reached[pair])])
        if below.shape[1] != len(values):
            raise ValueError("an area needs as many points below as above")
    reached[pair] = values
    return marks.scatter(trace, x, y, below=below, number=number)


# --- where everything lies --------------------------------------------------------------------------------------------


def _pair(trace: Mapping[str, Any]) -> tuple[str, str]:
    return str(trace.get("xaxis", "x")), str(trace.get("yaxis", "y"))


def _other(axis: Axis, axes: Mapping[str, Axis], traces: list[dict[str, Any]]) -> Axis:
    """The other axis of the subplot, along which this one is anchored."""
    if (anchor := axes.get(str(axis.settings.get("anchor")))) is not None:
        return anchor
    pairs = [_pair(trace) for trace in traces if axis.name in _pair(trace)]
    return axes[pairs[0][1 if axis.across else 0] if pairs else ("y" if axis.across else "x")]


def _axes(traces: list[dict[str, Any]], layout: Mapping[str, Any]) -> dict[str, Axis]:
    """All axes with their ends; those that follow another one have its ends."""
    names = {name.replace("axis", ""): settings for name, settings in layout.items() if name[1:5] == "axis"}
    for trace in traces:
        for name in _pair(trace):
            names.setdefault(name, {})
    axes = {name: Axis(name, settings) for name, settings in names.items()}
    for axis in axes.values():
        seen, tight = _seen(axis, axes, traces, layout)
        axis.fit(seen, tight=tight)
    for axis in axes.values():
        if (leader := axis.settings.get("matches")) in axes:
            axis.low, axis.high = axes[leader].low, axes[leader].high
    return axes


def _seen(
    axis: Axis, axes: Mapping[str, Axis], traces: list[dict[str, Any]], layout: Mapping[str, Any]
) -> tuple[list[float], bool]:
    """The numbers of an axis' traces in its units, and whether they reach to the ends of the plot."""
    name, found, tight = "x" if axis.across else "y", list[float](), True
    stacked: dict[tuple[float, bool], float] = {}
    floor: NDArray[np.floating] | float = 0.0
    for trace in traces:
        x, y = (axes[one] for one in _pair(trace))
        if axis not in (x, y):
            continue
        if trace["type"] == "heatmap":
            at, step = map_marks.places(trace, axis)
            found += [float(at.min()) - step / 2, float(at.max()) + step / 2]
        elif trace["type"] == "bar":
            along, lengths = marks.bar_numbers(trace, x, y)
            if not len(along):
                continue
            if (axis is y) == (trace.get("orientation") == "h"):
                found += [float(along.min()) - 0.5, float(along.max()) + 0.5]
                continue
            if layout.get("barmode") == "stack":
                for place, length in zip(along.tolist(), lengths.tolist(), strict=True):
                    stacked[place, length < 0] = stacked.get((place, length < 0), 0.0) + length
                lengths = np.array(list(stacked.values()))
            reached = axis.numbers(lengths).tolist()
            found += reached if axis.log else [0.0, *(1.05 * one for one in reached)]
        else:
            values = axis.numbers(trace[name])
            if trace.get("stackgroup") and not axis.across:
                values = floor = values + floor
                found.append(0.0)
            tight = tight and axis.across and "markers" not in trace.get("mode", "")
            found += values.tolist()
    return found, tight


def _beyond(traces: list[dict[str, Any]]) -> float:
    """The px that texts at the ends of bars may need to the right of the plot."""
    flat = [trace for trace in traces if trace.get("orientation") == "h" and isinstance(trace.get("text"), list)]
    return max((width_of(str(text)) + 8 for trace in flat for text in trace["text"]), default=14.0)


def _box(axes: Mapping[str, Axis], width: float, height: float, titles: int, scales: int, beyond: float) -> marks.Box:
    """The px of all plots together, with room for the texts beside them."""
    room = {"left": 0.0, "right": 0.0, "top": 0.0, "bottom": 0.0}
    for axis in axes.values():  # how far the texts of an axis across are turned depends on its length: a first guess
        axis.start, axis.end = (80.0, width - 100.0) if axis.across else (height - 60.0, 60.0)
        _within_domain(axis)
    for axis in axes.values():
        low, high = axis.domain
        side = axis.settings.get("side") or ("bottom" if axis.across else "left")
        if (side in ("right", "top") and high > 0.99) or (side in ("left", "bottom") and low < 0.01):
            room[side] = max(room[side], axis.depth())
    return (
        _EDGE + room["left"] + 4,
        _EDGE + room["top"] + (10 + 20 * titles if titles else 6),
        width - _EDGE - max(room["right"], beyond) - scales * marks.BAR_ROOM,
        height - _EDGE - room["bottom"] - 6,
    )


def _within_domain(axis: Axis) -> None:
    low, high = axis.domain
    start, length = axis.start, axis.end - axis.start
    axis.start, axis.end = start + low * length, start + high * length


def _lay(axes: Mapping[str, Axis], box: marks.Box) -> marks.Box:
    """Gives every axis its place, and says what they take: cells that are to be square make one of a pair shorter."""
    for axis in axes.values():
        axis.start, axis.end = (box[0], box[2]) if axis.across else (box[3], box[1])
        _within_domain(axis)
    for axis in axes.values():
        if (partner := axes.get(str(axis.settings.get("scaleanchor")))) is None:
            continue
        units = [abs(axis.high - axis.low) * axis.settings.get("scaleratio", 1), abs(partner.high - partner.low)]
        scale = min(abs(one.end - one.start) / unit for one, unit in zip((axis, partner), units, strict=True))
        for one, unit in zip((axis, partner), units, strict=True):
            sign = 1 if one.end > one.start else -1
            middle = min(one.start, one.end) + scale * unit / 2  # maps begin beside the names of rows and columns
            one.start, one.end = middle - sign * scale * unit / 2, middle + sign * scale * unit / 2
    for axis in axes.values():
        if (leader := axes.get(str(axis.settings.get("overlaying")))) is not None and axis.settings.get("matches"):
            axis.start, axis.end = leader.start, leader.end
    if not any("scaleanchor" in axis.settings for axis in axes.values()):
        return box
    right = max(max(axis.start, axis.end) for axis in axes.values() if axis.across)
    bottom = max(max(axis.start, axis.end) for axis in axes.values() if not axis.across)
    return box[0], box[1], right, bottom


def _clips(axes: Mapping[str, Axis]) -> Iterator[str]:
    """The clip paths of the subplots, which cut lines off at their edges."""
    for x in (axis for axis in axes.values() if axis.across):
        for y in (axis for axis in axes.values() if not axis.across):
            a, b = sorted((x.start, x.end))
            c, d = sorted((y.start, y.end))
            box = tag("rect", x=a - 1, y=c - 1, width=b - a + 2, height=d - c + 2)
            yield tag("clipPath", box, id=f"plot-{x.name}-{y.name}")
