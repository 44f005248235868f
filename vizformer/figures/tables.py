"""A figure as a table: its numbers in long form, for those who do not see it, and for sorting.

    table(figure).rows            # [(1, "b", 1, "b", 0.75), ...], the strongest where there are more than `most`

The columns are the names of the axes, so that a figure needs nothing for it.  One that is drawn with shapes names a
figure of its numbers (`Figure.told_by`).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from vizformer.figures.figure import Figure
from vizformer.figures.hovers import named, number, one_line
from vizformer.figures.series import Series, all_series, ints
from vizformer.figures.style import texts

MOST_ROWS = 1000  # rows of a table; of more, the strongest are kept

_AT_ONCE = 1 << 20  # cells that are sorted at once

Cell = str | float | int


@dataclass(frozen=True)
class Table:
    """The numbers of a figure in long form: a row for each cell, point or bar."""

    columns: tuple[str, ...]
    rows: Sequence[tuple[Cell, ...]]
    total: int  # rows that there are; more than `rows` where only the strongest are kept


def table(figure: Figure, *, most: int = MOST_ROWS) -> Table:
    """The numbers of a figure: series, places, their names, and values; at most `most` rows, those furthest from 0."""
    words = texts()
    series, _ = all_series(figure)
    everything = [one.values for one in series]
    total = sum(int((~np.isnan(values)).sum()) for values in everything)
    kept = _strongest(everything, most)
    several = len({one.name for one in series}) > 1
    by_hover = any(
        part in str(one.trace.get("hovertemplate", "")) for one in series for part in ("customdata", "text}")
    )
    maps = any(one.is_map for one in series)
    axes = [
        _axis(figure, series, letter, words)
        for letter in ("yx" if maps or any(one.sideways for one in series) else "xy")
    ]
    if axes[0].title == axes[1].title:  # two axes of names without titles
        axes = [replace(axis, title=words["across" if axis.letter == "x" else "up"]) for axis in axes]
    heads = [words["series"]] if several else []
    for axis in axes:
        heads += [axis.title] if axis.shown != "both" else [axis.title, words["name_of"].format(axis=axis.title)]
    heads += [_value_title(series, words)] if maps else []
    heads += [words["in_words"]] if by_hover else []
    rows = []
    for which, at in kept:
        one = series[which]
        row: list[Cell] = [one.name] if several else []
        across, down = one.place(at)
        for axis in axes:
            place, names = (across, one.across) if axis.letter == "x" else (down, one.down)
            row += [_cell(place)] if axis.shown != "names" else []
            row += [named(place, names)] if axis.shown != "numbers" else []
        row += [_cell(everything[which][at])] if one.is_map else [""] if maps else []
        row += [one.hover(at)] if by_hover else []
        rows.append(tuple(row))
    return Table(tuple(heads), rows, total)


@dataclass(frozen=True)
class _Axis:
    """A column of places, or two: their numbers, their names or both."""

    letter: str
    title: str
    shown: Literal["numbers", "names", "both"]


def _axis(figure: Figure, series: list[Series], letter: str, words: Mapping[str, str]) -> _Axis:
    """The title of an axis, and whether the table shows its numbers, its names (without a title, or numeric) or both."""
    _, layout = (figure.told_by or figure).parts
    own = [layout.get(f"{letter}axis{n}", {}).get("title", {}).get("text", "") for n in ("", "2")]
    title = next((one_line(text) for text in own if text), "")
    names: dict[float, str] = {}
    for one in series:
        names |= one.across if letter == "x" else one.down
    if all(text == number(place) for place, text in names.items()):
        shown: Literal["numbers", "names", "both"] = "numbers"
    else:
        shown = "both" if title and not all(_is_number(text) for text in names.values()) else "names"
    maps = any(one.is_map for one in series)
    ways = ("column", "row") if maps else ("name", "name") if shown == "names" else ("across", "up")
    return _Axis(letter, title or words[ways[0 if letter == "x" else 1]], shown)


def _is_number(text: str) -> bool:
    return re.fullmatch(r"[-−+]?[\d,.]+", text) is not None


def _value_title(series: list[Series], words: Mapping[str, str]) -> str:
    titles = (one.trace.get("colorbar", {}).get("title", {}).get("text", "") for one in series if one.is_map)
    return next((one_line(text) for text in titles if text), words["cell_value"])


def _strongest(series: list[NDArray[Any]], most: int) -> list[tuple[int, tuple[int, ...]]]:
    """(series, place) of the values furthest from 0, in the order in which they stand; all where they are few enough."""
    sizes: list[NDArray[Any]] = []
    whiches: list[NDArray[Any]] = []
    places: list[NDArray[Any]] = []
    for which, values in enumerate(series):
        flat = values.ravel()
        for start in range(0, len(flat), _AT_ONCE):  # no copy of a whole map of 4,096 tokens
            part = np.abs(flat[start : start + _AT_ONCE])
            there = np.flatnonzero(~np.isnan(part))
            if len(there) > most:
                there = there[np.argpartition(part[there], len(there) - most)[-most:]]
            sizes.append(part[there].astype(np.float64))
            whiches.append(np.full(len(there), which))
            places.append(there + start)
    if not sizes:
        return []
    size, order, place = np.concatenate(sizes), np.concatenate(whiches), np.concatenate(places)
    kept = np.arange(len(size)) if len(size) <= most else np.argsort(-size, kind="stable")[:most]
    kept = kept[np.lexsort((place[kept], order[kept]))]
    pairs = zip(order[kept].tolist(), place[kept].tolist(), strict=True)
    return [(which, ints(np.unravel_index(at, series[which].shape))) for which, at in pairs]


def _cell(value: Any) -> Cell:
    """A text or a plain number for the table, which JSON can hold; a float32 with the digits that it has."""
    if isinstance(value, float | np.floating) and not np.isfinite(value):
        return number(value)
    if isinstance(value, np.floating):
        return float(str(value))
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, int | float):
        return value
    return one_line(str(value))
