"""The pictures of the head report: numbers of every head, and of one head its map and its largest weights."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vizformer.figures import style
from vizformer.figures.attention import attention_heatmap
from vizformer.figures.embeddings import sides
from vizformer.figures.figure import Figure, frame, name_axes
from vizformer.figures.style import VIRIDIS, fill, heights, safe
from vizformer.word_tables import spoken, words_of

MOST_MARKED = 400  # squares: more would hide the map
PRINTED_UP_TO = 16
NAMED_UP_TO = 64  # heads of a scatter, where a name may stand beside each

ENGLISH: Mapping[str, str] = {**style.ENGLISH, **words_of(__file__)}  # every text of these figures


def measure_of_heads(
    values: NDArray[np.floating],
    *,
    measure: str,
    signed: bool = False,
    columns: Sequence[str] | None = None,
    title: str = "",
) -> Figure:
    """Draws one number of every head [layers, heads]; NaN leaves a cell empty.

    `signed`: whether its sign says something; colours go as far to both sides of 0 then, to 1 or to the largest |value|.
        Else they go from the smallest to the largest.
    """
    words = spoken(ENGLISH)
    values = np.ascontiguousarray(values, dtype=np.float32)
    if values.ndim != 2:
        raise ValueError(f"values must be [layers, heads], not of shape {values.shape}")
    end = max(1.0, style.reach(values))
    figure = Figure().add_heatmap(
        z=values,
        **(style.signed(end) if signed else {"colorscale": _viridis()}),
        colorbar={"title": {"text": safe(measure)}, "thickness": 14},
        xgap=1,
        ygap=1,
        hoverongaps=False,
        **(style.printed(values) if max(values.shape) <= PRINTED_UP_TO else {}),
        hovertemplate=fill(words["of_head"], layer="%{y}", head="%{x}", value="%{z:.4g}"),
    )
    rows = [words["layer_short"].replace("{layer}", str(layer)) for layer in range(values.shape[0])]
    heads = [words["head_short"].replace("{head}", str(head)) for head in range(values.shape[1])]
    name_axes(figure, rows, columns or heads, square=False)
    return frame(figure, title, height=heights(*values.shape))


def _viridis() -> style.Scale:
    return [(i / (len(VIRIDIS) - 1), colour) for i, colour in enumerate(VIRIDIS)]


@dataclass(frozen=True)
class Measure:
    """A number of every head [layers, heads], NaN where there is none: an axis of a scatter, or its colour."""

    title: str
    values: NDArray[np.floating]
    share: bool = False  # whether it is a share of 1
    signed: bool = False  # whether its sign says something

    def said(self) -> list[str]:
        """The number of every head as text."""
        many = self.values.dtype.kind == "f"
        return [
            "–" if value != value else f"{value:.1%}" if self.share else f"{value:.3g}" if many else str(value)
            for value in self.values.ravel().tolist()
        ]

    def ticks(self) -> dict[str, object]:
        """The tick properties of an axis or a colour bar."""
        if self.values.dtype.kind == "i":
            return {"tickformat": "d", "dtick": max(1, (int(np.ptp(self.values)) + 9) // 10)}
        return {"tickformat": ".0%"} if self.share else {}


def head_scatter(
    across: Measure, up: Measure, colour: Measure, *, chosen: tuple[int, int] | None = None, title: str = ""
) -> Figure:
    """Draws every head as a point, with a ring around the chosen one.

    Its number in the first trace is layer * n_heads + head.  A head without a number on an axis is not drawn.
    Names stand beside the points, as layer.head, where there is room.
    """
    words = spoken(ENGLISH)
    shape = up.values.shape
    if len(shape) != 2 or across.values.shape != shape or colour.values.shape != shape:
        raise ValueError(f"measures of the shapes {across.values.shape}, {shape}, {colour.values.shape} do not fit")
    x, y, c = (one.values.astype(np.float32).ravel() for one in (across, up, colour))
    places = [f"{layer}.{head}" for layer, head in np.ndindex(shape)]
    at = 0 if chosen is None else chosen[0] * shape[1] + chosen[1]
    there = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
    named = there if len(there) <= NAMED_UP_TO else there[there == at]
    names, positions = [""] * len(x), ["top center"] * len(x)
    first = int(np.flatnonzero(named == at)[0]) if at in named else 0
    if len(named):
        points = np.stack([x[named], y[named]], axis=1)
        beside = sides(points, [places[i] for i in named], [0] * len(named), first)
        for i, side in zip(named.tolist(), beside, strict=True):
            names[i], positions[i] = places[i] if side else "", side or "top center"
    said = {
        name: [words["number_of"].format(measure=safe(one.title), value=text) for text in one.said()]
        for name, one in (("across", across), ("up", up), ("colour", colour))
    }
    hover = [
        words["on_scatter"].format(layer=str(layer), head=str(head), **{name: said[name][i] for name in said})
        for i, (layer, head) in enumerate(np.ndindex(shape))
    ]
    end = style.reach(c)
    scale = (
        {"cmin": -end, "cmax": end, "colorscale": style.signed_scale()} if colour.signed else {"colorscale": _viridis()}
    )
    bar = {"title": {"text": safe(colour.title)}, "thickness": 14, **colour.ticks()}
    figure = Figure().add_scatter(
        x=x,
        y=y,
        mode="markers+text",
        text=names,
        textposition=positions,
        cliponaxis=False,
        customdata=hover,
        marker={"size": 12, "color": c, "colorbar": bar, "line": {"color": style.MASKED_LINE, "width": 1}, **scale},
        selected={"marker": {"opacity": 1.0}},
        unselected={"marker": {"opacity": 1.0}},
        hovertemplate="%{customdata}<extra></extra>",
    )
    if chosen is not None and at in there:
        figure.add_scatter(
            x=x[[at]],
            y=y[[at]],
            mode="markers",
            marker={"symbol": "circle-open", "size": 22, "color": style.QUALITATIVE[1], "line": {"width": 3}},
            hoverinfo="skip",
        )
    frame(figure, title, height=440, hovermode="closest")
    for one, values, update in ((across, x, figure.update_xaxes), (up, y, figure.update_yaxes)):
        low, high = (float(values[there].min()), float(values[there].max())) if len(there) else (0.0, 1.0)
        room = 0.08 * max(high - low, 1e-3)
        update(title=safe(one.title), range=[low - room, high + room], **one.ticks())
    return figure


def weight_histogram(counts: NDArray[np.integer], *, title: str = "") -> Figure:
    """Draws how large the largest weight of each query of a head is: the share of its queries in equal parts of 0 to 1.

    `counts`: queries in each part [bins].
    """
    words = spoken(ENGLISH)
    bins, total = len(counts), max(int(np.sum(counts)), 1)
    ends = [f"{at / bins:.2f}" for at in range(bins + 1)]
    figure = Figure().add_bar(
        x=((np.arange(bins) + 0.5) / bins).astype(np.float32),
        y=(np.asarray(counts) / total).astype(np.float32),
        width=1 / bins,
        marker={"color": VIRIDIS[3], "line": {"color": style.GRID, "width": 1}},
        customdata=[[low, high, f"{n:,}"] for low, high, n in zip(ends, ends[1:], counts.tolist(), strict=False)],
        hovertemplate=fill(
            words["largest_between"],
            low="%{customdata[0]}",
            high="%{customdata[1]}",
            n="%{customdata[2]}",
            value="%{y:.1%}",
            total=f"{total:,}",
        ),
    )
    frame(figure, title, height=300)
    figure.update_xaxes(title=safe(words["largest"]), range=[0, 1])
    return figure.update_yaxes(title=safe(words["rows"]), tickformat=".0%", rangemode="tozero")


def eigenvalue_plane(values: NDArray[np.complexfloating], *, title: str = "") -> Figure:
    """Draws eigenvalues [n] as points of the complex plane."""
    words = spoken(ENGLISH)
    end = 1.1 * style.reach(np.abs(values).astype(np.float32))
    figure = Figure().add_scatter(
        x=np.ascontiguousarray(values.real, dtype=np.float32),
        y=np.ascontiguousarray(values.imag, dtype=np.float32),
        mode="markers",
        marker={"size": 8, "color": style.QUALITATIVE[0], "opacity": 0.75},
        hovertemplate="%{x:.4g} + %{y:.4g} i<extra></extra>",
        showlegend=False,
    )
    axis = {"range": [-end, end], "zeroline": True, "zerolinecolor": style.MASKED_LINE, "gridcolor": style.GRID}
    figure.update_layout(
        xaxis={**axis, "title": {"text": words["real"]}},
        yaxis={**axis, "title": {"text": words["imaginary"]}, "scaleanchor": "x", "constrain": "domain"},
    )
    return frame(figure, title, height=320)


def marked_map(
    pattern: NDArray[np.floating],
    query_tokens: Sequence[str],
    key_tokens: Sequence[str],
    marked: NDArray[np.bool_],
    *,
    reasons: NDArray[np.integer] | None = None,
    title: str = "",
) -> Figure:
    """One head's map with squares around some cells, the strongest MOST_MARKED of those that are marked."""
    if np.shape(marked) != np.shape(pattern):
        raise ValueError(f"marks of shape {np.shape(marked)} do not fit a pattern of shape {np.shape(pattern)}")
    figure = attention_heatmap(pattern, query_tokens, key_tokens, reasons=reasons, title=title)
    cells = np.argwhere(marked)
    strongest = np.argsort(-np.asarray(pattern)[marked], kind="stable")[:MOST_MARKED]
    for query, key in cells[strongest].tolist():
        figure.add_rectangle(
            key - 0.47, key + 0.47, query - 0.47, query + 0.47, line={"color": style.QUALITATIVE[1], "width": 2}
        )
    return figure
