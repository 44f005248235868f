"""The traces of a figure for sentences and tables: the values of each, and the names of its axes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vizformer.figures.figure import Figure, Trace
from vizformer.figures.hovers import Names, hover, one_line

MASKED = "masked"  # the `meta` of a trace that only says which cells are masked


@dataclass(frozen=True)
class Series:
    """A trace with the titles and tick labels of its axes."""

    trace: Trace
    across: Names
    down: Names

    @property
    def is_map(self) -> bool:
        return bool(self.trace["type"] == "heatmap")

    @property
    def is_curve(self) -> bool:
        """Whether larger values stand higher."""
        return self.trace["type"] == "scatter" and not self.sideways

    @property
    def name(self) -> str:
        return one_line(str(self.trace.get("name", "")))

    @property
    def values(self) -> NDArray[Any]:
        """The values: the cells of a map, the lengths of bars, the heights of points; NaN where there is none."""
        return _numbers(self.trace.get("z" if self.is_map else "x" if self.sideways else "y", ()))

    @property
    def sideways(self) -> bool:
        """Whether the values run to the right: bars that lie, and points in rows that have names."""
        rows = self.trace.get("y", ())
        in_rows = bool(self.down) and not self.across and all(self.down.get(plain_place(row)) for row in rows)
        return self.trace.get("orientation") == "h" or (self.trace["type"] == "scatter" and in_rows)

    def place(self, at: tuple[int, ...]) -> tuple[Any, Any]:
        """x and y of a cell or a point."""
        last = (at[-1], at[0])
        found = []
        for letter, index in zip("xy", last, strict=True):
            places = self.trace.get(letter)
            found.append(index if places is None else places[index])
        return found[0], found[1]

    def hover(self, at: tuple[int, ...]) -> str:
        """The hover text of a cell or a point."""
        across, down = self.place(at)
        return hover(self.trace, at, (across, self.across), (down, self.down))


def all_series(figure: Figure) -> tuple[list[Series], int]:
    """The traces that are told of, and how many cells are masked."""
    traces, layout = (figure.told_by or figure).parts
    found, masked = [], 0
    for trace in traces:
        if trace.get("meta") == MASKED:
            masked += int(np.isfinite(np.asarray(trace["z"])).sum())
        elif trace.get("hoverinfo") != "skip" and trace["type"] in ("heatmap", "bar", "scatter"):
            found.append(Series(trace, *(_names(layout, trace, letter) for letter in "xy")))
    maps = [one for one in found if one.is_map]  # points over a map only mark its cells
    return maps or found, masked + sum(int(np.isneginf(one.values).sum()) for one in maps)


def _names(layout: Mapping[str, Any], trace: Mapping[str, Any], letter: str) -> Names:
    """The tick labels of an axis, where it has names."""
    axis = layout.get(str(trace.get(f"{letter}axis", letter)).replace(letter, f"{letter}axis", 1), {})
    texts, places = axis.get("ticktext"), axis.get("tickvals")
    if texts is None or places is None:
        return {}
    return {float(place): one_line(str(text)) for place, text in zip(places, texts, strict=True)}


def plain_place(value: Any) -> float:
    """A place on an axis as a number; NaN for a text."""
    return float(value) if isinstance(value, int | float | np.number) else float("nan")


def _numbers(values: Any) -> NDArray[Any]:
    """An array of numbers; NaN for what is none (names of bars, gaps of lines)."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "fiu":
        return values
    shown: Iterable[Any] = values
    return np.array([one if isinstance(one, int | float | np.number) else np.nan for one in shown], dtype=np.float64)


def ints(place: Any) -> tuple[int, ...]:
    """Converts an index of NumPy to a tuple of ints."""
    return tuple(int(one) for one in place)
