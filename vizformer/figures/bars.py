"""Tokens in an order, each with the bar of its number."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from vizformer.figures.axes import name_rows
from vizformer.figures.figure import Figure
from vizformer.figures.style import GRID, VIRIDIS


def token_bars(
    tokens: Sequence[str], values: NDArray[np.floating], texts: Sequence[str], hover: str, *, above: float = 0.5
) -> Figure:
    """Horizontal bars in the order given, the first on top, a text behind each; tokens may read the same.

    `above`: free space over the first bar, in bars.
    """
    lengths = np.asarray(values, dtype=np.float32)
    if lengths.shape != (len(tokens),):
        raise ValueError(f"values of shape {lengths.shape} do not fit {len(tokens)} tokens")
    places = np.arange(len(tokens), dtype=np.int32)
    figure = Figure().add_bar(
        x=lengths,
        y=places,
        orientation="h",
        marker={"color": VIRIDIS[3], "line": {"color": GRID, "width": 1}},
        text=list(texts),
        textposition="outside",
        textfont={"size": 14},
        cliponaxis=False,
        hovertemplate=hover,
    )
    name_rows(figure, tokens, range=[len(tokens) - 0.5, -above], tickfont={"size": 15})
    return figure
