"""The hover of a point as a text: Plotly's template with its values, as the browser writes them.

Source: plotly.com/javascript/hover-text-and-formatting, and the formats of d3 (d3js.org/d3-format) that the figures use.
"""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from vizformer.figures.svg.ink import plain

Names = Mapping[float, str]  # what the places of an axis are called

_PLACE = re.compile(r"%\{(\w+)((?:\[\d+\])*)(?::([^}]*))?\}")
_PREFIXES = {9: "G", 6: "M", 3: "k", 0: "", -3: "m", -6: "µ", -9: "n"}


def one_line(text: str) -> str:
    """A text that Plotly would read as its kind of HTML, on one line."""
    return " ".join(" ".join(plain(text)).split())


def hover(trace: Mapping[str, Any], at: tuple[int, ...], across: tuple[Any, Names], down: tuple[Any, Names]) -> str:
    """The hover text of a point or a cell: its filled `hovertemplate`, or x, y and the value without one."""
    template = trace.get("hovertemplate")
    if isinstance(template, list | tuple):
        template = template[at[0]]
    if not template:
        template = "%{x}, %{y}: %{z:.4g}" if trace["type"] == "heatmap" else "%{x}: %{y}"

    def put(name: str, numbers: str, form: str | None) -> str:
        indices = [int(i) for i in re.findall(r"\d+", numbers)]
        if name in ("x", "y"):
            place, names = across if name == "x" else down
            return written(place, form) if form else named(place, names)
        value: Any = (
            at if name == "pointNumber" and len(at) > 1 else at[0] if name == "pointNumber" else trace.get(name)
        )
        if name != "pointNumber":
            for index in at:
                if isinstance(value, list | tuple | np.ndarray):
                    value = value[index]
        for index in indices:
            value = value[index]
        return written(value, form)

    said, end = "", 0  # a token may read like a place or like markup: so nothing is read twice
    shown = str(template).split("<extra>")[0]
    for found in _PLACE.finditer(shown):
        said += " ".join(plain(shown[end : found.start()])) + put(found[1], found[2], found[3])
        end = found.end()
    said += " ".join(plain(shown[end:]))
    return " ".join(said.split()).rstrip(".。")


def named(place: Any, names: Names) -> str:
    """The name of a place on an axis; its number where it has none."""
    if isinstance(place, str):
        return one_line(place)
    return names.get(float(place), number(place))


def number(value: Any) -> str:
    """A number with four digits, or as many as stand before its point."""
    value = float(value)
    if not np.isfinite(value):
        return "NaN" if value != value else "∞".rjust(2, "−") if value < 0 else "∞"
    if value == round(value) and abs(value) < 1e15:
        return f"{value:,.0f}".replace("-", "−")
    return f"{value:.4g}".replace("-", "−")


def written(value: Any, form: str | None) -> str:
    """Formats a value by a format string of d3."""
    if isinstance(value, str):
        return one_line(value)
    if not form:
        return number(value)
    value = float(value)
    if form.endswith("s"):
        power = 3 * int(np.floor(np.log10(abs(value)) / 3)) if value else 0
        power = max(-9, min(9, power))
        digits = int(re.sub(r"\D", "", form) or 6)
        return f"{value / 10.0**power:.{digits}g}{_PREFIXES[power]}".replace("-", "−")
    if form.endswith("d"):
        return f"{round(value):{form}}".replace("-", "−")
    if form == ",":
        return number(value)
    return f"{value:{form.replace('~', '')}}".replace("-", "−")
