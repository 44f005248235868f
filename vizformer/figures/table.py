"""A figure without looking at it: a table of its numbers, and a sentence that says what stands out.

    sentence(figure)              # "9 values from 0.2 to 1, 3 more are masked. Largest: query 1 “b” attends to ..."
    table(figure).rows            # [(1, "b", 1, "b", 0.75), ...], the strongest first where there are more than `most`

Both are read off the traces: the names of the axes are the columns, and the hover of the largest value is the sentence.
So a figure needs nothing for them.  One that is drawn with shapes says by `Figure.told_by` which map holds its numbers.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from vizformer.figures.figure import Figure, Trace
from vizformer.figures.hover import Names, hover, named, number, one_line
from vizformer.figures.style import N_

MOST_ROWS = 1000
"""Rows of a table; of more, the strongest are kept."""

MASKED = "masked"
"""The `meta` of a trace that only says which cells are masked."""

_AT_ONCE = 1 << 20  # cells that are sorted at once

ENGLISH: Mapping[str, str] = {
    "values": N_("Values: {n}, from {low} to {high}."),
    "values_masked": N_("Values: {n}, from {low} to {high}; masked cells: {masked}."),
    "same_value": N_("Values: {n}; every one is {low}."),
    "only_masked": N_("Every cell is masked."),
    "nothing": N_("There are no numbers in this picture."),
    "largest": N_("Largest: {hover}."),
    "largest_of_several": N_("Largest, where a row has more than one cell: {hover}."),
    "smallest": N_("Smallest: {hover}."),
    "highest": N_("Highest: {hover}."),
    "lowest": N_("Lowest: {hover}."),
    "and_then": N_("{first} {then}"),
    "series": N_("series"),
    "row": N_("row"),
    "column": N_("column"),
    "across": N_("x (to the right)"),
    "up": N_("y (upwards)"),
    "name": N_("name"),
    "cell_value": N_("value"),
    "name_of": N_("{axis}: name"),
    "in_words": N_("in words"),
}
"""Every text of tables and sentences; pages pass the same names in the reader's language."""

Cell = str | float | int


@dataclass(frozen=True)
class Table:
    """The numbers of a figure in long form: a row for each cell, point or bar.

    Attributes:
        columns: their headings.
        rows: a text or a number for each column.
        total: rows that there are; more than `rows` where only the strongest are kept.
    """

    columns: tuple[str, ...]
    rows: list[tuple[Cell, ...]]
    total: int


@dataclass(frozen=True)
class _Series:
    """A trace, with what its axes are called."""

    trace: Trace
    across: Names
    down: Names

    @property
    def is_map(self) -> bool:
        return self.trace["type"] == "heatmap"

    @property
    def name(self) -> str:
        return one_line(str(self.trace.get("name", "")))

    @property
    def values(self) -> NDArray[Any]:
        """What is told of: the cells of a map, the lengths of bars, the heights of points; NaN where there is none."""
        return _numbers(self.trace.get("z" if self.is_map else "x" if self.sideways else "y", ()))

    @property
    def sideways(self) -> bool:
        """Whether the values run to the right: bars that lie, and points in rows that have names."""
        rows = self.trace.get("y", ())
        in_rows = bool(self.down) and not self.across and all(self.down.get(_place(row)) for row in rows)
        return self.trace.get("orientation") == "h" or (self.trace["type"] == "scatter" and in_rows)

    def place(self, at: tuple[int, ...]) -> tuple[Any, Any]:
        """x and y of a cell or a point."""
        last = (at[-1], at[0])
        found = []
        for letter, index in zip("xy", last, strict=True):
            places = self.trace.get(letter)
            found.append(index if places is None else places[index])
        return found[0], found[1]


def sentence(figure: Figure, words: Mapping[str, str] = ENGLISH) -> str:
    """What stands out in a figure: how many values from where to where, and the hover of the largest.

    The smallest is named too where values lie below 0, and of curves and bars.
    """
    words = {**ENGLISH, **words}
    if figure.says:
        return figure.says
    series, masked = _series(figure)
    places = [(one, values) for one in series if np.isfinite(values := one.values).any()]
    if not places:
        return words["only_masked"] if masked else words["nothing"]
    count = sum(int(np.isfinite(values).sum()) for _, values in places)
    high = max(places, key=lambda found: np.nanmax(found[1]))
    low = min(places, key=lambda found: np.nanmin(found[1]))
    ends = {"low": number(np.nanmin(low[1])), "high": number(np.nanmax(high[1]))}
    if np.nanmin(low[1]) == np.nanmax(high[1]):
        return words["same_value"].format(n=f"{count:,}", **ends)
    said = words["values_masked" if masked else "values"].format(n=f"{count:,}", masked=f"{masked:,}", **ends)
    if high[0].trace["type"] == "scatter" and not high[0].sideways:
        kind, at = "highest", (int(np.nanargmax(high[1])),)
    else:
        kind, at = _largest(*high, masked=bool(masked))
    said = _then(words, said, words[kind].replace("{hover}", _hover(high[0], at)))
    if np.nanmin(low[1]) < 0 or not low[0].is_map:
        smallest = np.unravel_index(int(np.nanargmin(low[1])), low[1].shape)
        kind = "lowest" if low[0].trace["type"] == "scatter" and not low[0].sideways else "smallest"
        said = _then(words, said, words[kind].replace("{hover}", _hover(low[0], _ints(smallest))))
    return said


def table(figure: Figure, words: Mapping[str, str] = ENGLISH, *, most: int = MOST_ROWS) -> Table:
    """The numbers of a figure: series, places, their names, and values; at most `most` rows, those furthest from 0."""
    words = {**ENGLISH, **words}
    series, _ = _series(figure)
    everything = [one.values for one in series]
    total = sum(int(np.isfinite(values).sum()) for values in everything)
    kept = _strongest(everything, most)
    several = len({one.name for one in series}) > 1
    by_hover = any(part in str(one.trace.get("hovertemplate", "")) for one in series for part in ("customdata", "text}"))
    maps = any(one.is_map for one in series)
    axes = [_axis(figure, series, letter, words) for letter in ("yx" if maps or _sideways(series) else "xy")]
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
        row += [_cell(one.values[at])] if one.is_map else [""] if maps else []
        row += [_hover(one, at)] if by_hover else []
        rows.append(tuple(row))
    return Table(tuple(heads), rows, total)


def _series(figure: Figure) -> tuple[list[_Series], int]:
    """The traces that are told of, and how many cells are masked."""
    traces, layout = (figure.told_by or figure).parts
    found, masked = [], 0
    for trace in traces:
        if trace.get("meta") == MASKED:
            masked += int(np.isfinite(np.asarray(trace["z"])).sum())
        elif trace.get("hoverinfo") != "skip" and trace["type"] in ("heatmap", "bar", "scatter"):
            found.append(_Series(trace, *(_names(layout, trace, letter) for letter in "xy")))
    maps = [one for one in found if one.is_map]  # points over a map only mark its cells
    return maps or found, masked


def _names(layout: Mapping[str, Any], trace: Mapping[str, Any], letter: str) -> Names:
    """What the places of an axis are called, where they have names."""
    axis = _layout_axis(layout, trace, letter)
    texts, places = axis.get("ticktext"), axis.get("tickvals")
    if texts is None or places is None:
        return {}
    return {float(place): one_line(str(text)) for place, text in zip(places, texts, strict=True)}


def _layout_axis(layout: Mapping[str, Any], trace: Mapping[str, Any], letter: str) -> Mapping[str, Any]:
    name = str(trace.get(f"{letter}axis", letter)).replace(letter, f"{letter}axis", 1)
    found: Mapping[str, Any] = layout.get(name, {})
    return found


@dataclass(frozen=True)
class _Axis:
    """A column of places, or two: their numbers, their names or both."""

    letter: str
    title: str
    shown: Literal["numbers", "names", "both"]


def _axis(figure: Figure, series: list[_Series], letter: str, words: Mapping[str, str]) -> _Axis:
    """How an axis is told: by names alone where it counts nothing, or where the names are what is counted."""
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


def _sideways(series: list[_Series]) -> bool:
    return any(one.sideways for one in series)


def _place(value: Any) -> float:
    return float(value) if isinstance(value, int | float | np.number) else float("nan")


def _value_title(series: list[_Series], words: Mapping[str, str]) -> str:
    titles = (one.trace.get("colorbar", {}).get("title", {}).get("text", "") for one in series if one.is_map)
    return next((one_line(text) for text in titles if text), words["cell_value"])


def _largest(one: _Series, values: NDArray[Any], *, masked: bool) -> tuple[str, tuple[int, ...]]:
    """How the largest value is called, and where it is.

    A row under a mask that sees one key gives it the weight 1, whatever the model: such a row is passed over.
    """
    if masked and one.is_map:
        several = np.isfinite(values).sum(axis=1) > 1
        if several.any() and np.nanmax(values[several]) < np.nanmax(values):
            shown = np.where(several[:, None], values, np.nan)
            return "largest_of_several", _ints(np.unravel_index(int(np.nanargmax(shown)), shown.shape))
    return "largest", _ints(np.unravel_index(int(np.nanargmax(values)), values.shape))


def _strongest(series: list[NDArray[Any]], most: int) -> list[tuple[int, tuple[int, ...]]]:
    """(series, place) of the values furthest from 0, in the order in which they stand; all where they are few enough."""
    sizes, whiches, places = [], [], []
    for which, values in enumerate(series):
        flat = values.ravel()
        for start in range(0, len(flat), _AT_ONCE):  # no copy of a whole map of 4,096 tokens
            part = np.abs(flat[start : start + _AT_ONCE])
            there = np.flatnonzero(np.isfinite(part))
            if len(there) > most:
                there = there[np.argpartition(part[there], len(there) - most)[-most:]]
            sizes.append(part[there])
            whiches.append(np.full(len(there), which))
            places.append(there + start)
    if not sizes:
        return []
    size, which, place = np.concatenate(sizes), np.concatenate(whiches), np.concatenate(places)
    kept = np.arange(len(size)) if len(size) <= most else np.argsort(-size, kind="stable")[:most]
    kept = kept[np.lexsort((place[kept], which[kept]))]
    return [
        (int(which[at]), _ints(np.unravel_index(int(place[at]), series[int(which[at])].shape))) for at in kept.tolist()
    ]


def _hover(one: _Series, at: tuple[int, ...]) -> str:
    across, down = one.place(at)
    return hover(one.trace, at, (across, one.across), (down, one.down))


def _then(words: Mapping[str, str], first: str, then: str) -> str:
    return words["and_then"].replace("{first}", first).replace("{then}", then)


def _numbers(values: Any) -> NDArray[Any]:
    """An array of numbers; NaN for what is none (names of bars, gaps of lines)."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "fiu":
        return values
    flat = list(_flat(values))
    return np.array([one if isinstance(one, int | float | np.number) else np.nan for one in flat], dtype=np.float64)


def _flat(values: Any) -> Iterator[Any]:
    yield from values


def _ints(place: Any) -> tuple[int, ...]:
    return tuple(int(one) for one in place)


def _cell(value: Any) -> Cell:
    """A text or a plain number for the table; a float32 with the digits that it has."""
    if isinstance(value, np.floating):
        return float(str(value))
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, int | float):
        return value
    return one_line(str(value))
