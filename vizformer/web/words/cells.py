"""Cells of tables whose texts are in the reader's language."""

from vizformer.components.table import Number
from vizformer.web.words import labels


def share(probability: float) -> Number:
    """A cell with a probability, or with another share of 1."""
    return Number(float(probability), labels.percent(float(probability)).replace("-", "−"))
