"""Why scores are divided: how dot products grow with the width, and what spread-out scores do to softmax."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from vizformer.figures.figure import Figure, frame
from vizformer.figures.style import DASHES, MASKED_LINE, QUALITATIVE, fill, safe, texts


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
        legend={"orientation": "h", "y": -0.24, "yanchor": "top"},
        margin={"l": 62, "r": 12, "t": top, "b": 120, "autoexpand": False},
    )
    figure.update_xaxes(automargin=False)
    figure.update_yaxes(automargin=False)


def _mark(figure: Figure, where: float, colour: str) -> None:
    """An upright line at a place of a logarithmic axis."""
    figure.add_vline(x=10**where, line={"color": colour, "width": 2, "dash": "dot"})
