"""Scores of models against what their trainings cost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from vizformer.figures.figure import Figure, scatter
from vizformer.figures.style import QUALITATIVE, fill, frame, safe

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
        figure.add_trace(
            scatter(
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
        )
    frame(figure, title, height=420, hovermode="closest")
    figure.update_xaxes(type="log", title=safe(cost_title), dtick=1, exponentformat="power")
    figure.update_yaxes(title=safe(score_title))
    figure.update_layout(showlegend=True, legend={"orientation": "h", "y": -0.22, "yanchor": "top"})
    return figure
