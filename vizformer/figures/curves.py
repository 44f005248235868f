"""Curves and points: over positions or steps, how scores grow with the width, scores of models against their cost."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vizformer.figures.figure import Figure, frame
from vizformer.figures.style import DASHES, MASKED_LINE, QUALITATIVE, fill, safe, texts

MARK = "rgba(128, 128, 128, 0.9)"


def line_curves(
    places: NDArray[np.number],
    curves: Mapping[str, NDArray[np.floating]],
    *,
    place_title: str = "",
    value_title: str = "",
    hover: str = "{name}: {place}, {value}",
    dots: tuple[NDArray[np.number], Mapping[str, NDArray[np.floating]], Sequence[str]] | None = None,
    mark: tuple[float, str] | None = None,
    value_range: tuple[float, float] | None = None,
    digits: int = 3,
    title: str = "",
) -> Figure:
    """Draws curves that may end early, with a vertical line at one place.

    Args:
        places: where the values stand, ascending.
        curves: name -> values, at most as many as there are places.
        hover: a sentence with {name}, {place} and {value}.
        dots: (places, name -> values, what the hover calls each place): points on the curves.
        mark: (place, words) of a vertical line.
        value_range: lowest and highest value shown; default: what the curves need.
    """
    figure = Figure()
    for order, (name, values) in enumerate(curves.items()):
        if len(values) > len(places):
            raise ValueError(f"{name!r} has {len(values)} values for {len(places)} places")
        colour = QUALITATIVE[order % len(QUALITATIVE)]
        figure.add_scatter(
            x=np.asarray(places[: len(values)], dtype=np.float32),
            y=np.asarray(values, dtype=np.float32),
            mode="lines",
            name=safe(name),
            line={"color": colour, "dash": DASHES[order % len(DASHES)], "width": 2.5},
            hovertemplate=fill(hover, name=safe(name), place="%{x:.4~g}", value=f"%{{y:.{digits}f}}"),
        )
        if dots is not None:
            figure.add_scatter(
                x=np.asarray(dots[0], dtype=np.float32),
                y=np.asarray(dots[1][name], dtype=np.float32),
                mode="markers",
                name=safe(name),
                showlegend=False,
                marker={"color": colour, "size": 8},
                customdata=[safe(text) for text in dots[2]],
                hovertemplate=fill(hover, name=safe(name), place="%{customdata}", value=f"%{{y:.{digits}f}}"),
            )
    frame(figure, title, height=420)
    figure.update_layout(showlegend=len(curves) > 1, legend={"orientation": "h", "y": -0.25, "yanchor": "top"})
    figure.update_xaxes(title=safe(place_title))
    if len(places) <= 12 and np.issubdtype(places.dtype, np.integer) and (np.diff(places) == 1).all():
        figure.update_xaxes(dtick=1)  # there is no layer 0.5
    figure.update_yaxes(title=safe(value_title), range=value_range)
    if mark is not None:
        place, words = mark
        figure.add_vline(x=place, line={"color": MARK, "width": 2, "dash": "dash"})
        figure.add_text(place, 0.01, words, xref="x", yref="paper", xanchor="left", yanchor="bottom", xshift=4)
    return figure


# Why scores are divided: how dot products grow with the width, and what spread-out scores do to softmax.


def variance_growth(widths: Sequence[int], variances: NDArray[np.floating], *, at: int, title: str = "") -> Figure:
    """Draws the measured variance of q . k over the width d, before and after the division, and the line Var = d."""
    words = texts()
    x, y = np.array(widths, dtype=np.int32), np.asarray(variances, dtype=np.float32)
    if x.shape != y.shape or not len(x):
        raise ValueError(f"{len(x)} widths do not fit variances of shape {y.shape}")
    figure = Figure().add_scatter(
        x=x,
        y=x.astype(np.float32),
        mode="lines",
        name=safe(words["line"]),
        hoverinfo="skip",
        line={"color": QUALITATIVE[7], "dash": "dash", "width": 2},
    )
    rows = (("measured", y, "circle"), ("divided", y / x.astype(np.float32), "square"))
    for order, (name, values, symbol) in enumerate(rows):
        figure.add_scatter(
            x=x,
            y=values,
            mode="markers",
            name=safe(words[name]),
            marker={"size": np.where(x == at, 15, 9).astype(np.int32), "symbol": symbol, "color": QUALITATIVE[order]},
            hovertemplate=fill(words["variance_at"], width="%{x}", value="%{y:.3g}"),
        )
    frame(figure, title, height=390)
    _mark(figure, float(np.log10(at)), MASKED_LINE)
    ticks = x if len(x) <= 6 else x[::3]
    figure.update_xaxes(type="log", tickvals=ticks, ticktext=[str(tick) for tick in ticks], title=safe(words["width"]))
    figure.update_yaxes(type="log", tickvals=[1, 10, 100, 1000], title=safe(words["variance"]))
    _settle(figure, top=50)
    return figure


def saturation_curves(
    deviations: NDArray[np.floating],
    largest: NDArray[np.floating],
    slopes: NDArray[np.floating],
    *,
    marks: Sequence[tuple[str, float]] = (),
    title: str = "",
) -> Figure:
    """Draws softmax's largest weight and what it can still learn, over the spread of its scores."""
    words = texts()
    x = np.asarray(deviations, dtype=np.float32)
    if not x.shape == np.shape(largest) == np.shape(slopes):
        raise ValueError(f"{len(x)} deviations do not fit {np.shape(largest)} weights and {np.shape(slopes)} slopes")
    figure = Figure()
    for order, (name, values) in enumerate((("largest_weight", largest), ("slope", slopes))):
        figure.add_scatter(
            x=x,
            y=np.asarray(values, dtype=np.float32),
            mode="lines",
            name=safe(words[name]),
            line={"color": QUALITATIVE[order], "dash": DASHES[order], "width": 3},
            hovertemplate=fill(words["at"], name=safe(words[name]), value="%{y:.3f}", deviation="%{x:.3g}"),
        )
    frame(figure, title, height=390)
    reach = np.log10([x.min(), x.max()])
    for order, (name, place) in enumerate(marks):
        where = float(np.clip(np.log10(place), *reach))
        _mark(figure, where, QUALITATIVE[2 + order])
        # One name above the other: two marks may stand close together.
        figure.add_text(
            where,
            1.17 - 0.09 * order,
            name,
            xref="x",
            yref="paper",
            xanchor="right" if where > reach.mean() else "left",
            font={"color": QUALITATIVE[2 + order], "size": 13},
        )
    ticks = [0.125, 1, 8, 32]  # few: every label is measured in the browser at every change
    ends = [float(reach[0]) - 0.04, float(reach[1]) + 0.04]
    names = [f"{tick:g}" for tick in ticks]
    figure.update_xaxes(type="log", tickvals=ticks, ticktext=names, range=ends, title=safe(words["deviation"]))
    figure.update_yaxes(range=[-0.03, 1.03], tickvals=[0, 0.5, 1])
    _settle(figure, top=90)
    return figure


def _settle(figure: Figure, top: int) -> None:
    """Fixed margins and a legend below: measuring them in the browser would double the time of a change."""
    figure.update_layout(
        showlegend=True,
        legend={"orientation": "h", "y": -0.34, "yanchor": "top"},
        margin={"l": 62, "r": 12, "t": top, "b": 120, "autoexpand": False},
    )
    figure.update_xaxes(automargin=False)
    figure.update_yaxes(automargin=False)


def _mark(figure: Figure, where: float, colour: str) -> None:
    """An upright line at a place of a logarithmic axis."""
    figure.add_vline(x=10**where, line={"color": colour, "width": 2, "dash": "dot"})


# Scores of models against what their trainings cost.

SYMBOLS = ("circle", "square", "diamond", "cross", "triangle-up")


@dataclass(frozen=True)
class Point:
    """A model: its name, what its training cost (above 0), its score."""

    name: str
    cost: float
    score: float


def named_points(
    groups: Mapping[str, Sequence[tuple[str, float, float]]],
    *,
    x_title: str = "",
    y_title: str = "",
    hover: str = "{name}: {x}, {y}",
    title: str = "",
    rings: Collection[str] = (),
    ends: tuple[float, float] | None = None,
) -> Figure:
    """Draws points (name, x, y) with their names; groups differ in colour and shape.

    `rings`: groups drawn as rings, named below, so that other points are seen inside of them.
    `ends`: of both axes; default: what the points need.
    """
    figure = Figure()
    for order, (group, points) in enumerate(groups.items()):
        figure.add_scatter(
            x=np.array([point[1] for point in points], dtype=np.float64),
            y=np.array([point[2] for point in points], dtype=np.float32),
            mode="markers+text",
            name=safe(group),
            text=[safe(point[0]) for point in points],
            textposition="bottom center" if group in rings else "top center",
            cliponaxis=False,
            marker={
                "size": 24 if group in rings else 12,
                "color": QUALITATIVE[order % len(QUALITATIVE)],
                "symbol": "circle-open" if group in rings else SYMBOLS[order % len(SYMBOLS)],
            },
            hovertemplate=fill(hover, name="%{text}", x="%{x:.2~g}", y="%{y:.2f}"),
        )
    frame(figure, title, height=420, hovermode="closest")
    figure.update_xaxes(title=safe(x_title), range=ends)
    figure.update_yaxes(title=safe(y_title), range=ends)
    figure.update_layout(showlegend=True, legend={"orientation": "h", "y": -0.22, "yanchor": "top"})
    return figure


def score_against_cost(
    groups: Mapping[str, Sequence[Point]],
    *,
    cost_title: str = "",
    score_title: str = "",
    hover: str = "{name}: {score}, {cost}",
    title: str = "",
) -> Figure:
    """Draws points with their names, the cost on a logarithmic scale; groups differ in colour and shape."""
    if any(point.cost <= 0 for points in groups.values() for point in points):
        raise ValueError("a cost must be above 0")
    named = {group: [(one.name, one.cost, one.score) for one in points] for group, points in groups.items()}
    hover = hover.replace("{score}", "{y}").replace("{cost}", "{x}")
    figure = named_points(named, x_title=cost_title, y_title=score_title, hover=hover, title=title)
    return figure.update_xaxes(type="log", dtick=1, exponentformat="power")


def changes(
    names: Sequence[str],
    groups: Mapping[str, Sequence[float]],
    *,
    axis_title: str = "",
    hover: str = "{name}: {change}",
    title: str = "",
) -> Figure:
    """Draws by how much each of several changes moves a number, a row for each change; groups differ in colour and shape."""
    figure = Figure()
    rows = np.arange(len(names), dtype=np.int32)
    for order, (group, values) in enumerate(groups.items()):
        if len(values) != len(names):
            raise ValueError(f"{len(values)} numbers do not fit {len(names)} names")
        figure.add_scatter(
            x=np.array(values, dtype=np.float32),
            y=rows,
            mode="markers",
            name=safe(group),
            text=[safe(name) for name in names],
            cliponaxis=False,
            marker={
                "size": 11,
                "color": QUALITATIVE[order % len(QUALITATIVE)],
                "symbol": SYMBOLS[order % len(SYMBOLS)],
            },
            hovertemplate=fill(hover, name="%{text}", change="%{x:+.3f}"),
        )
    frame(figure, title, height=120 + 26 * len(names), hovermode="closest")
    figure.update_xaxes(title=safe(axis_title), zeroline=True, zerolinewidth=2)
    figure.update_yaxes(
        tickvals=rows, ticktext=[safe(name) for name in names], range=[len(names) - 0.5, -0.5], automargin=True
    )
    figure.update_layout(showlegend=True, legend={"orientation": "h", "y": -2.4 / len(names), "yanchor": "top"})
    return figure
