"""Sums as bars: the terms of a logit, and of a score."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from vizformer.figures.figure import Figure, frame, name_rows
from vizformer.figures.style import GRID, QUALITATIVE, VIRIDIS, fill, safe, texts

ROW = 26  # px


def logit_terms(
    names: Sequence[str], values: NDArray[np.floating], *, title: str = "", words: Mapping[str, str] | None = None
) -> Figure:
    """Draws one bar for each term, in the order given, the first on top; those below 0 in another colour.

    `words`: those that are not the usual ones.
    """
    words = texts() | dict(words or {})
    lengths = np.ascontiguousarray(values, dtype=np.float32)
    if lengths.shape != (len(names),):
        raise ValueError(f"values of shape {lengths.shape} do not fit {len(names)} names")
    largest = float(np.abs(lengths).max(initial=0.0))
    digits = 2 if largest >= 1 else 3 if largest >= 0.05 else 4
    places = np.arange(len(names), dtype=np.int32)
    figure = Figure().add_bar(
        x=lengths,
        y=places,
        orientation="h",
        marker={
            "color": [QUALITATIVE[int(value < 0)] for value in lengths.tolist()],
            "line": {"color": GRID, "width": 1},
        },
        text=[f"{value:+.{digits}f}".replace("-", "−") for value in lengths.tolist()],
        textposition="outside",
        cliponaxis=False,
        customdata=[safe(name) for name in names],
        hovertemplate=fill(words["of_logit"], name="%{customdata}", value="%{x:.4f}"),
    )
    frame(figure, title, height=80 + ROW * max(len(names), 3), bargap=0.2)
    name_rows(figure, names, tickfont={"size": 14})
    low, high = min(0.0, float(lengths.min(initial=0.0))), max(0.0, float(lengths.max(initial=0.0)))
    room = 0.18 * max(high - low, 1e-6)  # for the numbers at the ends of the bars
    figure.update_xaxes(
        title=safe(words["logit_share"]), zeroline=True, range=[low - room * (low < 0), high + room * (high > 0)]
    )
    return figure


def score_terms(
    places: NDArray[np.integer],
    terms: NDArray[np.floating],
    query: NDArray[np.floating],
    key: NDArray[np.floating],
    *,
    title: str = "",
) -> Figure:
    """Draws the terms query * key, scaled as the score is, as bars in the order given, in two colours by their sign."""
    words = texts()
    values = np.asarray(terms, dtype=np.float32)
    if not values.shape == np.shape(places) == np.shape(query) == np.shape(key):
        raise ValueError("every term needs its place and its two numbers")
    hover = fill(words["score_term"], dimension="%{customdata[0]}", value="%{y:.4f}", query="%{customdata[1]}")
    hover = fill(hover, key="%{customdata[2]}")
    numbers = zip(places.tolist(), np.asarray(query).tolist(), np.asarray(key).tolist(), strict=True)
    figure = Figure().add_bar(
        x=np.arange(len(values), dtype=np.int32),
        y=values,
        marker={"color": [QUALITATIVE[int(value < 0)] for value in values.tolist()]},
        customdata=[[place, f"{q:.4f}", f"{k:.4f}"] for place, q, k in numbers],
        hovertemplate=hover,
    )
    frame(figure, title, height=300, bargap=0.15)
    step = max(1, -(-len(values) // 24))
    figure.update_xaxes(
        tickvals=np.arange(0, len(values), step, dtype=np.int32),
        ticktext=[str(place) for place in places.tolist()[::step]],
        title=safe(words["term_place"]),
    )
    figure.update_yaxes(title=safe(words["score"]))
    return figure


# Tokens in an order, each with the bar of its number: what the model expects next.
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
    frame(figure, title, height=86 + 34 * max(3, len(tokens)), bargap=0.25)
    figure.update_layout(margin={"r": 64})  # the label of a bar that fills the scale stands outside it
    figure.update_xaxes(range=[0, 1], tickformat=".0%", title=safe(words["probability"]))
    return figure


def _percent(probability: float, words: Mapping[str, str]) -> str:
    """Formats a probability in percent with one decimal; one that would round to 0.0% is written as "less than"."""
    if not np.isfinite(probability):
        return safe(words["not_finite"])
    return safe("<0.1%") if 0 < probability < 0.0005 else f"{probability:.1%}"
