"""Curves over positions, distances or steps, several in one picture, told apart by colour and by dashes."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from vizformer.figures.figure import Figure, frame
from vizformer.figures.style import DASHES, QUALITATIVE, fill, safe

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
    height: int = 360,
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
    frame(figure, title, height=height)
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
