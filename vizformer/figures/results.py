"""Scores of models against what their trainings cost."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from vizformer.figures.figure import Figure, frame
from vizformer.figures.style import QUALITATIVE, fill, safe

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
    figure.update_layout(showlegend=True, legend={"orientation": "h", "y": -0.16, "yanchor": "top"})
    return figure
