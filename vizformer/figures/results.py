"""Scores of models against what their trainings cost."""

from collections.abc import Mapping, Sequence
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


def score_against_cost(
    groups: Mapping[str, Sequence[Point]],
    *,
    cost_title: str = "",
    score_title: str = "",
    hover: str = "{name}: {score}, {cost}",
    title: str = "",
) -> Figure:
    """Draws points with their names, the cost on a logarithmic scale; groups differ in colour and shape.

    Raises:
        ValueError: a cost that has no logarithm.
    """
    figure = Figure()
    for order, (group, points) in enumerate(groups.items()):
        if any(point.cost <= 0 for point in points):
            raise ValueError("a cost must be above 0")
        figure.add_scatter(
            x=np.array([point.cost for point in points], dtype=np.float64),
            y=np.array([point.score for point in points], dtype=np.float32),
            mode="markers+text",
            name=safe(group),
            text=[safe(point.name) for point in points],
            textposition="top center",
            cliponaxis=False,
            marker={
                "size": 12,
                "color": QUALITATIVE[order % len(QUALITATIVE)],
                "symbol": SYMBOLS[order % len(SYMBOLS)],
            },
            hovertemplate=fill(hover, name="%{text}", score="%{y:.2f}", cost="%{x:.2~g}"),
        )
    frame(figure, title, height=420, hovermode="closest")
    figure.update_xaxes(type="log", title=safe(cost_title), dtick=1, exponentformat="power")
    figure.update_yaxes(title=safe(score_title))
    figure.update_layout(showlegend=True, legend={"orientation": "h", "y": -0.22, "yanchor": "top"})
    return figure


def changes(
    names: Sequence[str],
    groups: Mapping[str, Sequence[float]],
    *,
    axis_title: str = "",
    hover: str = "{name}: {change}",
    title: str = "",
) -> Figure:
    """Draws by how much each of several changes moves a number, a row for each change; groups differ in colour and shape.

    Args:
        names: of the changes, from top to bottom.
        groups: name of a group -> its number for each change.

    Raises:
        ValueError: not one number for each name.
    """
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
