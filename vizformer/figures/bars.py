"""Tokens in an order, each with the bar of its number: what the model expects next."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from vizformer.figures.axes import name_rows
from vizformer.figures.figure import Figure, frame
from vizformer.figures.style import GRID, VIRIDIS, fill, safe, texts


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


def next_token_bars(tokens: Sequence[str], probabilities: NDArray[np.floating], *, title: str = "") -> Figure:
    """Draws the probabilities of some next tokens as horizontal bars, in the order given, the first on top."""
    words = texts()
    values = np.asarray(probabilities, dtype=np.float32)
    hover = fill(words["next_token"], token="%{y}", value="%{x:.4f}")
    figure = token_bars(tokens, values, [_percent(value, words) for value in values.ravel().tolist()], hover)
    frame(figure, title, height=70 + 30 * max(3, len(tokens)), bargap=0.25)
    figure.update_layout(margin={"r": 64})  # the label of a bar that fills the scale stands outside it
    figure.update_xaxes(range=[0, 1], tickformat=".0%", title=safe(words["probability"]))
    return figure


def _percent(probability: float, words: Mapping[str, str]) -> str:
    """Formats a probability in percent with one decimal; one that would round to 0.0% is written as "less than"."""
    if not np.isfinite(probability):
        return safe(words["not_finite"])
    return safe("<0.1%") if 0 < probability < 0.0005 else f"{probability:.1%}"
