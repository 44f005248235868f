"""What the model expects next."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from vizformer.figures.bars import token_bars
from vizformer.figures.figure import Figure, frame
from vizformer.figures.style import fill, safe, texts


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
    """One digit after the point; what would round to 0.0% is not nothing."""
    if not np.isfinite(probability):
        return safe(words["not_finite"])
    return safe("<0.1%") if 0 < probability < 0.0005 else f"{probability:.1%}"
