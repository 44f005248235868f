"""A figure as a table: its numbers in long form, for those who do not see it, and for sorting.

    table(figure).rows            # [(1, "b", 1, "b", 0.75), ...], the strongest where there are more than `most`

The columns are the names of the axes, so that a figure needs nothing for it.  One that is drawn with shapes names a
figure of its numbers (`Figure.told_by`).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from vizformer.figures.figure import Figure, Trace
from vizformer.figures.style import texts
from vizformer.figures.svg.axes import plain

# The traces of a figure for sentences and tables: the values of each, and the names of its axes.

MASKED_CELLS = "masked"  # the `meta` of a trace that only says which cells are masked

Names = Mapping[float, str]  # what the places of an axis are called

_PLACE = re.compile(r"%\{(\w+)((?:\[\d+\])*)(?::([^}]*))?\}")
_PREFIXES = {9: "G", 6: "M", 3: "k", 0: "", -3: "m", -6: "µ", -9: "n"}


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
        if trace.get("meta") == MASKED_CELLS:
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


# The hover of a point as a text: Plotly's template with its values, as the browser writes them.
#
# Source: plotly.com/javascript/hover-text-and-formatting, and the formats of d3 (d3js.org/d3-format) that the
# figures use.
def one_line(text: str) -> str:
    """A text that Plotly would read as its kind of HTML, on one line."""
    return " ".join(" ".join(plain(text)).split())


def hover(trace: Mapping[str, Any], at: tuple[int, ...], across: tuple[Any, Names], down: tuple[Any, Names]) -> str:
    """The hover text of a point or a cell: its filled `hovertemplate`, or x, y and the value without one."""
    template = trace.get("hovertemplate")
    if isinstance(template, list | tuple):
        template = template[at[0]]
    if not template:
        template = "%{x}, %{y}: %{z:.4g}" if trace["type"] == "heatmap" else "%{x}: %{y}"

    def put(name: str, numbers: str, form: str | None) -> str:
        indices = [int(i) for i in re.findall(r"\d+", numbers)]
        if name in ("x", "y"):
            place, names = across if name == "x" else down
            return written(place, form) if form else named(place, names)
        value: Any = (
            at if name == "pointNumber" and len(at) > 1 else at[0] if name == "pointNumber" else trace.get(name)
        )
        if name != "pointNumber":
            for index in at:
                if isinstance(value, list | tuple | np.ndarray):
                    value = value[index]
        for index in indices:
            value = value[index]
        return written(value, form)

    said, end = "", 0  # a token may read like a place or like markup: so nothing is read twice
    shown = str(template).split("<extra>")[0]
    for found in _PLACE.finditer(shown):
        said += " ".join(plain(shown[end : found.start()])) + put(found[1], found[2], found[3])
        end = found.end()
    said += " ".join(plain(shown[end:]))
    return " ".join(said.split()).rstrip(".。")


def named(place: Any, names: Names) -> str:
    """The name of a place on an axis; its number where it has none."""
    if isinstance(place, str):
        return one_line(place)
    return names.get(float(place), number(place))


def number(value: Any) -> str:
    """A whole number with all its digits, any other with four of them."""
    value = float(value)
    if not np.isfinite(value):
        return "NaN" if value != value else "∞".rjust(2, "−") if value < 0 else "∞"
    if value == round(value) and abs(value) < 1e15:
        return f"{value:,.0f}".replace("-", "−")
    return f"{value:.4g}".replace("-", "−")


def written(value: Any, form: str | None) -> str:
    """Formats a value by a format string of d3."""
    if isinstance(value, str):
        return one_line(value)
    if not form:
        return number(value)
    value = float(value)
    if form.endswith("s"):
        power = 3 * int(np.floor(np.log10(abs(value)) / 3)) if value else 0
        power = max(-9, min(9, power))
        digits = int(re.sub(r"\D", "", form) or 6)
        return f"{value / 10.0**power:.{digits}g}{_PREFIXES[power]}".replace("-", "−")
    if form.endswith("d"):
        return f"{round(value):{form}}".replace("-", "−")
    if form == ",":
        return number(value)
    return f"{value:{form.replace('~', '')}}".replace("-", "−")


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


# A figure in a sentence: what stands out, for those who do not see it.
#
#     sentence(figure)     # "Values: 6, from 0.2 to 1; masked cells: 3. Largest: query 1 “b” attends to ..."
#
# It is read off the traces and their hovers, so that a figure needs nothing for it. One that is drawn with shapes
# names a figure of its numbers (`Figure.told_by`); one whose traces are no numbers says its own (`Figure.says`).
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
