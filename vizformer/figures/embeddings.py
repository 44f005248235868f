"""Vectors inside the model: one token in two contexts, layer by layer; lengths of what is added up before layer 0."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vizformer.figures.figure import Figure, band, frame
from vizformer.figures.style import DASHES, QUALITATIVE, fill, safe, texts

_MARKS = ("circle", "square", "diamond", "triangle-up")


@dataclass(frozen=True)
class Curve:
    """A cosine from the embedding table on: `values[0]` in the table, `values[1]` at the layers' input, and so on."""

    name: str
    values: NDArray[np.floating]


def similarity_curves(
    curves: Sequence[Curve],
    other: NDArray[np.floating],
    low: NDArray[np.floating],
    high: NDArray[np.floating],
    *,
    added: bool = True,
    title: str = "",
) -> Figure:
    """Draws how alike the vectors of one token are in two texts, from the embedding table through every layer.

    Args:
        other: mean cosine of different tokens at the layers' input and after every layer: one shorter than a curve.
        low, high: the percentiles between which most of these lie.
        added: whether position vectors are added before the first layer.
    """
    words = texts()
    count = len(other) + 1
    if any(len(curve.values) != count for curve in curves) or {len(low), len(high)} != {count - 1}:
        raise ValueError(f"curves need {count} values and bands {count - 1}")
    entry = words["input"] if added else words["input_alone"]
    names = [words["table"], entry, *(words["after"].replace("{layer}", str(layer)) for layer in range(count - 2))]
    places = np.arange(count, dtype=np.int32)
    figure = Figure()
    for trace in band(places[1:], low, high, safe(words["pairs"]), "rgba(128,128,128,0.25)"):
        figure.add_trace(trace)
    lines = [Curve(words["pairs_mean"], np.asarray([np.nan, *other])), *curves]
    for order, curve in enumerate(lines):
        figure.add_scatter(
            x=places,
            y=np.asarray(curve.values, dtype=np.float32),
            mode="lines" if order == 0 else "lines+markers",
            line={
                "color": QUALITATIVE[7] if order == 0 else QUALITATIVE[(1, 0)[(order - 1) % 2]],
                "dash": "dot" if order == 0 else DASHES[order - 1],
                "width": 2 if order == 0 else 3,
            },
            marker={"symbol": _MARKS[order % len(_MARKS)], "size": 9},
            name=safe(curve.name),
            hovertemplate=fill(words["similarity"], name=safe(curve.name), place="%{x}", value="%{y:.4f}"),
        )
    frame(figure, title, height=430)
    figure.update_layout(showlegend=True, legend={"orientation": "h", "y": -0.22})
    least = min(0.0, float(np.nanmin([*np.nan_to_num(low), *(curve.values.min() for curve in curves)])))
    figure.update_xaxes(
        tickvals=places, ticktext=[safe(name) for name in names], title=safe(words["place"]), range=[-0.2, count - 0.8]
    )
    figure.update_yaxes(title=safe(words["cosine"]), range=[least - 0.03, 1.06])
    return figure


def norm_bars(
    tokens: Sequence[str],
    token_lengths: NDArray[np.floating],
    position_lengths: NDArray[np.floating] | None,
    *,
    title: str = "",
) -> Figure:
    """Draws the lengths of the token and position vectors [n] side by side, one pair of bars a position."""
    words = texts()
    parts = [("token_length", token_lengths)]
    parts += [] if position_lengths is None else [("position_length", position_lengths)]
    places = np.arange(len(tokens), dtype=np.int32)
    figure = Figure()
    for order, (name, lengths) in enumerate(parts):
        values = np.asarray(lengths, dtype=np.float32)
        if values.shape != (len(tokens),):
            raise ValueError(f"lengths of shape {values.shape} do not fit {len(tokens)} tokens")
        hover = words["length_of"].replace("{part}", words[name])
        figure.add_bar(
            x=places,
            y=values,
            name=safe(words[name]),
            marker={"color": QUALITATIVE[order], "pattern": {"shape": ("", "/")[order]}},
            customdata=[safe(token) for token in tokens],
            hovertemplate=fill(hover, position="%{x:d}", token="%{customdata}", value="%{y:.3f}"),
        )
    frame(figure, title, height=380, bargap=0.2)
    figure.update_layout(barmode="group", showlegend=True, legend={"orientation": "h", "y": -0.3})
    step = max(1, -(-len(tokens) // 32))
    figure.update_xaxes(
        tickvals=places[::step],
        ticktext=[safe(token[:12]) for token in tokens[::step]],
        title=safe(words["token"]),
        showgrid=False,
        tickfont={"size": 14},
        tickangle=0 if len(tokens) <= 14 else None,
    )
    figure.update_yaxes(title=safe(words["length"]), rangemode="tozero")
    return figure
