"""What a wrong answer comes from: its misconception, and where that leads on the reader's own sentence.

A question names its own: `wrong` of `Laboratory.asked`, with words in the file of its lesson.  Each number and each cell
has those of this module besides: the reciprocal, the other sign, a percent; row and column that have changed places.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from vizformer.components.cells import Cell
from vizformer.web.words.i18n import _

_ROUNDED = 0.005  # share of a number by which an answer may be rounded


@dataclass(frozen=True, eq=False)
class Grid:
    """A picture with cells (shares of 1), one of which is the answer; at most `components.cells.LARGEST` rows or columns."""

    rows: Sequence[str]
    columns: Sequence[str]
    values: Float[np.ndarray, "rows columns"]
    looks: bool = True  # whether a cell says how much its row looks at its column; else only its value is known


@dataclass(frozen=True)
class Mistake:
    """A misconception: the answer it leads to (the index of a choice, or a number), and what is said of it."""

    given: float
    said: Callable[[str], str]


def of_number(
    given: float, answer: float, tolerance: float, own: Sequence[Mistake], written: Callable[[Any], str]
) -> str:
    """The misconception that gives a wrong number; empty where none is known."""
    named = [(one.given, one.said(written(one.given))) for one in own]
    for known in (named, _usual(answer, whole=not tolerance)):
        near = [(abs(at - given), said) for at, said in known if abs(at - given) <= max(tolerance, _ROUNDED * abs(at))]
        if near:
            return min(near)[1]
    return ""


def _usual(answer: float, *, whole: bool) -> list[tuple[float, str]]:
    """Mistakes that every number can come from."""
    sign = _("The sign is wrong, the size is right.")
    turned = _("That is the reciprocal: you exchanged the two numbers of the quotient.")
    percent = _("That is 100 times too much or too little: you mixed up a share and its percentage.")
    one_off = _("That is one too many or one too few: count the first and the last one again.")
    found = [(-answer, sign), (100 * answer, percent), (answer / 100, percent)]
    if whole:
        found += [(answer + 1, one_off), (answer - 1, one_off)]
    elif answer:
        found += [(1 / answer, turned)]
    return found


def of_cell(given: Cell, answer: Cell, grid: Grid) -> str:
    """The misconception that gives a wrong cell, with what that cell holds."""
    (row, column), (asks, seen) = given, answer
    place = {"row": grid.rows[row], "column": grid.columns[column]}
    values = {**place, "value": f"{grid.values[given]:.3f}", "best": f"{grid.values[answer]:.3f}"}
    if not grid.looks:
        return _("Your cell holds {value}, the right one {best}.", **values)
    holds = _("Your cell shows how much “{row}” attends to “{column}”: {value}.", **values)
    return f"{_relation(row - asks, column - seen, given == answer[::-1])} {holds}".strip()


def _relation(rows: int, columns: int, transposed: bool) -> str:
    """What has been mixed up, by how far the cell is from the right one."""
    if transposed:
        return _("You exchanged row and column: the row is the query, the column is the key.")
    if not columns:
        if abs(rows) == 1:
            before, after = _("the token before the right one"), _("the token after the right one")
            return _("This is the row of {neighbour}.", neighbour=before if rows < 0 else after)
        return _("The column is right, but this row is another query.")
    if not rows:
        if abs(columns) == 1:
            before, after = _("the token before the right one"), _("the token after the right one")
            return _("This is the column of {neighbour}.", neighbour=before if columns < 0 else after)
        return _("The row is right, but this column is another token.")
    return ""
