"""A figure in a sentence: what stands out, for those who do not see it.

    sentence(figure)     # "Values: 6, from 0.2 to 1; masked cells: 3. Largest: query 1 “b” attends to ..."

It is read off the traces and their hovers, so that a figure needs nothing for it.  One that is drawn with shapes names a
figure of its numbers (`Figure.told_by`); one whose traces are no numbers says its own (`Figure.says`).
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vizformer.figures.figure import Figure
from vizformer.figures.hovers import number
from vizformer.figures.series import Series, all_series, ints
from vizformer.figures.style import texts


def sentence(figure: Figure) -> str:
    """A sentence about a figure: the number of values, their range, and the hover text of the largest.

    The smallest is named too where values lie below 0, and of curves and bars.
    """
    words = texts()
    if figure.says:
        return figure.says
    series, masked = all_series(figure)
    places = [(one, values) for one in series if np.isfinite(values := one.values).any()]
    if not places:
        return words["only_masked"] if masked else words["nothing"]
    count = sum(int(np.isfinite(values).sum()) for _, values in places)
    high = max(places, key=lambda found: np.nanmax(found[1]))
    low = min(places, key=lambda found: np.nanmin(found[1]))
    ends = {"low": number(np.nanmin(low[1])), "high": number(np.nanmax(high[1]))}
    ends |= {"n": f"{count:,}", "masked": f"{masked:,}"}
    if np.nanmin(low[1]) == np.nanmax(high[1]):
        return words["same_value_masked" if masked else "same_value"].format(**ends)
    said = words["values_masked" if masked else "values"].format(**ends)
    kind, at = _largest(*high, masked=bool(masked))
    said = _then(words, said, words[kind].replace("{hover}", high[0].hover(at)))
    if np.nanmin(low[1]) < 0 or not low[0].is_map:
        smallest = np.unravel_index(int(np.nanargmin(low[1])), low[1].shape)
        kind = "lowest" if low[0].is_curve else "smallest"
        said = _then(words, said, words[kind].replace("{hover}", low[0].hover(ints(smallest))))
    return said


def _largest(one: Series, values: NDArray[Any], *, masked: bool) -> tuple[str, tuple[int, ...]]:
    """The name of the largest value, and its index.

    A row under a mask that sees one key gives it the weight 1, whatever the model: such a row is passed over.
    """
    if masked and one.is_map:
        several = np.isfinite(values).sum(axis=1) > 1
        if several.any() and np.nanmax(values[several]) < np.nanmax(values):
            shown = np.where(several[:, None], values, np.nan)
            return "largest_of_several", ints(np.unravel_index(int(np.nanargmax(shown)), shown.shape))
    return "highest" if one.is_curve else "largest", ints(np.unravel_index(int(np.nanargmax(values)), values.shape))


def _then(words: Mapping[str, str], first: str, then: str) -> str:
    return words["and_then"].replace("{first}", first).replace("{then}", then)
