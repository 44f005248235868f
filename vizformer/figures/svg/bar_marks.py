"""Draws bars and their hatching as SVG."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vizformer.figures.svg.axes import Axis
from vizformer.figures.svg.ink import SIZE, letters, paint, plain, tag
from vizformer.figures.svg.line_marks import each, trace_colour

Trace = Mapping[str, Any]


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
