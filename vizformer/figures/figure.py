"""A Plotly figure as plain dicts, without Plotly's checks: those take most of the time that a figure takes.

    figure = Figure(heatmap(z=values))
    figure.update_xaxes(title="key")
    figure.to_dict()                      # what plotly.js draws
    figure.show()                         # whatever else a Plotly figure can do, with all its checks
    figure.plotly                         # Plotly's own object, to be changed as one likes

`bar`, `heatmap`, `scatter` and `Figure` take what those of `plotly.graph_objects` take, written as dicts (no "font_size").
The tests hold every figure against Plotly's schema.

Source: plotly.com/javascript/reference; typed arrays as in plotly.js 2.28 (`bdata`).
"""

import base64
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vizformer.figures.style import GRID, safe
from vizformer.figures.svg import svg

if TYPE_CHECKING:
    import plotly.graph_objects

Trace = dict[str, Any]
_TYPED = {
    **{"int8": "i1", "uint8": "u1", "int16": "i2", "uint16": "u2", "int32": "i4", "uint32": "u4"},
    **{"float32": "f4", "float64": "f8"},
}
AXIS: Mapping[str, Any] = {"automargin": True, "zeroline": False, "gridcolor": GRID}
"""The properties that `frame` sets for every axis of a figure."""
_AXIS = re.compile(r"([xy]axis)[0-9]*")

MOST_LABELS = 48
LONGEST_LABEL = 16

Ticks = tuple[Sequence[float], Sequence[str]]


def bar(**properties: Any) -> Trace:
    """A bar trace."""
    return {"type": "bar", **properties}


def heatmap(**properties: Any) -> Trace:
    """A heat map trace: a matrix of coloured cells."""
    return {"type": "heatmap", **properties}


def scatter(**properties: Any) -> Trace:
    """A scatter trace: lines, markers and texts."""
    return {"type": "scatter", **properties}


def band(x: NDArray[Any], low: NDArray[Any], high: NDArray[Any], name: str, colour: str) -> list[Trace]:
    """The area between two lines, with one place in the legend and nothing said of its points."""
    return [
        scatter(
            x=x,
            y=np.asarray(values, dtype=np.float32),
            mode="lines",
            line={"width": 0},
            fill=area,
            fillcolor=colour,
            hoverinfo="skip",
            name=name,
            showlegend=area is not None,
        )
        for values, area in ((high, None), (low, "tonexty"))
    ]


class Figure:
    """A figure of traces and a layout, in the properties of Plotly."""

    def __init__(self, *traces: Trace) -> None:
        self._traces = list(traces)
        self._layout: dict[str, Any] = {"xaxis": {}, "yaxis": {}}
        self.told_by: Figure | None = None
        """A figure with the same numbers, where this one's traces are not what it shows (`figures.tables`); not drawn."""
        self.says = ""
        """What stands out, in a sentence, where its traces do not tell it (`figures.sentences`)."""

    def add_trace(self, trace: Trace) -> "Figure":
        self._traces.append(trace)
        return self._changed()

    def add_bar(self, **properties: Any) -> "Figure":
        return self.add_trace(bar(**properties))

    def add_heatmap(self, **properties: Any) -> "Figure":
        return self.add_trace(heatmap(**properties))

    def add_scatter(self, **properties: Any) -> "Figure":
        return self.add_trace(scatter(**properties))

    def update_traces(self, **properties: Any) -> "Figure":
        """Sets properties of all traces that were added so far."""
        for trace in self._traces:
            _merge(trace, properties)
        return self._changed()

    def add_shape(self, **properties: Any) -> "Figure":
        self._layout.setdefault("shapes", []).append(properties)
        return self._changed()

    def add_vline(self, x: float, **properties: Any) -> "Figure":
        """A vertical line over the whole height of the plot."""
        line = {"type": "line", "xref": "x", "x0": x, "x1": x, "yref": "y domain", "y0": 0, "y1": 1}
        return self.add_shape(**line | properties)

    def add_rectangle(self, x0: float, x1: float, y0: float, y1: float, **properties: Any) -> "Figure":
        return self.add_shape(type="rect", x0=x0, x1=x1, y0=y0, y1=y1, **properties)

    def add_text(self, x: float, y: float, text: str, **properties: Any) -> "Figure":
        """A plain text without an arrow."""
        return self.add_annotation(**{"x": x, "y": y, "text": safe(text), "showarrow": False} | properties)

    def add_annotation(self, **properties: Any) -> "Figure":
        self._layout.setdefault("annotations", []).append(properties)
        return self._changed()

    def update_layout(self, **properties: Any) -> "Figure":
        _merge(self._layout, properties)
        return self._changed()

    def update_xaxes(self, **properties: Any) -> "Figure":
        """Changes all x axes that there are by now."""
        return self._update_axes("xaxis", properties)

    def update_yaxes(self, **properties: Any) -> "Figure":
        """Changes all y axes that there are by now."""
        return self._update_axes("yaxis", properties)

    @property
    def title(self) -> str:
        """The title above the plot; empty where there is none."""
        return str(self._layout.get("title", {}).get("text", ""))

    @property
    def parts(self) -> tuple[list[Trace], dict[str, Any]]:
        """The traces and the layout as they are, arrays as arrays; to be read, not to be changed."""
        return self._traces, self._layout

    def to_dict(self) -> dict[str, Any]:
        """The figure as plotly.js reads it: arrays as bytes in base64, everything else as JSON."""
        return {
            "data": [_sent(trace) for trace in self._traces],
            "layout": _sent({name: part for name, part in self._layout.items() if part != {}}),
        }

    @cached_property
    def plotly(self) -> "plotly.graph_objects.Figure":
        """The figure as an object of Plotly, which checks every property.

        Raises:
            ValueError: something in it is not in Plotly's schema.
        """
        import plotly.graph_objects as go

        return go.Figure({"data": self._traces, "layout": self._layout})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # (copying and pickling ask before there is anything)
            raise AttributeError(name)
        if name.startswith(("add_", "update_", "set_", "append_", "for_each_")):
            raise AttributeError(f"{name}: change Plotly's own object instead, figure.plotly")
        return getattr(self.plotly, name)

    def _repr_mimebundle_(self, *_: Any, **__: Any) -> dict[str, Any]:
        """The figure for notebooks: as Plotly's JSON for those that have Plotly, and as an SVG for all others.

        Nothing in it asks a server or a network, as the HTML of Plotly may.  It stands on white, as its file does: a
        notebook may be dark, and Plotly's letters there are dark too.
        """
        drawn = json.loads(self.plotly.to_json())
        drawn["layout"]["paper_bgcolor"] = "white"
        shown: dict[str, Any] = {"application/vnd.plotly.v1+json": drawn}
        with suppress(ValueError):  # a kind of figure that is not drawn on paper
            shown["image/svg+xml"] = svg(self)
        return shown

    def _update_axes(self, kind: str, properties: Mapping[str, Any]) -> "Figure":
        for name, axis in self._layout.items():
            if (found := _AXIS.fullmatch(name)) and found[1] == kind:
                _merge(axis, properties)
        return self._changed()

    def _changed(self) -> "Figure":
        self.__dict__.pop("plotly", None)
        return self


def frame(figure: Figure, title: str = "", **layout: Any) -> Figure:
    """Transparent background and slim margins; `title` is plain text."""
    figure.update_layout(
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        showlegend=False,
        margin={"l": 10, "r": 10, "t": 50 if title else 20, "b": 20},
        title={"text": safe(title)} if title else None,
        **layout,
    )
    figure.update_xaxes(**AXIS)
    figure.update_yaxes(**AXIS)
    return figure


def _merge(into: dict[str, Any], properties: Mapping[str, Any]) -> None:
    """Sets properties; those of an object that is there already one by one.  None takes one away."""
    for name, value in properties.items():
        if value is None:
            into.pop(name, None)
        elif isinstance(value, Mapping):
            inner = into.setdefault(name, {})
            _merge(inner, value)
        elif name == "title" and isinstance(value, str):
            _merge(into.setdefault(name, {}), {"text": value})
        else:
            into[name] = value


def _sent(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _sent(inner) for name, inner in value.items() if inner is not None}
    if isinstance(value, np.ndarray):
        return _typed(value)
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return [_sent(inner) for inner in value]
    return value


def _typed(array: np.ndarray) -> Any:
    """An array as plotly.js reads it; texts, truth values and numbers that do not fit as lists."""
    if array.dtype.kind in "iu" and array.dtype.itemsize == 8:
        ends = np.iinfo(np.int32)
        if array.size and (array.min() < ends.min or array.max() > ends.max):
            return array.tolist()
        array = array.astype(np.int32)
    kind = _TYPED.get(array.dtype.name)
    if kind is None or not array.size:
        return array.tolist()
    found = {"dtype": kind, "bdata": base64.b64encode(np.ascontiguousarray(array).data).decode("ascii")}
    return found if array.ndim == 1 else {**found, "shape": ", ".join(map(str, array.shape))}


# Axes with names: integer positions below, so that equal tokens stay apart, and the names as tick texts.
#
# A hover can only name what its axis has a tick for.  Where there are too many names to print, the axes of the data
# carry them all, unprinted, and a second pair of axes on top of them prints some.
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
