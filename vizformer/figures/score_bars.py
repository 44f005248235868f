"""The terms of one score: which numbers of a query and a key it is the sum of."""

import numpy as np
from numpy.typing import NDArray

from vizformer.figures.figure import Figure, frame
from vizformer.figures.style import QUALITATIVE, fill, safe, texts


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
