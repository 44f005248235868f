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
    name: str = ""  # the same in every language and for every sentence


def of_number(
    given: float, answer: float, tolerance: float, own: Sequence[Mistake], written: Callable[[Any], str]
) -> str:
    """The misconception that gives a wrong number; empty where none is known."""
    found = number_mistake(given, answer, tolerance, own)
    return found.said(written(found.given)) if found else ""


def number_mistake(given: float, answer: float, tolerance: float, own: Sequence[Mistake]) -> Mistake | None:
    """The mistake nearest to a wrong number, of the question's own ones before the usual ones."""

    def apart(one: Mistake) -> float:
        return abs(one.given - given)

    for known in (own, _usual(answer, whole=not tolerance)):
        if near := [one for one in known if apart(one) <= max(tolerance, _ROUNDED * abs(one.given))]:
            return min(near, key=apart)
    return None


def _usual(answer: float, *, whole: bool) -> list[Mistake]:
    """Mistakes that every number can come from."""

    def mistake(name: str, given: float) -> Mistake:
        return Mistake(given, lambda __: general(name), name)

    found = [mistake("any-sign", -answer), mistake("any-percent", 100 * answer), mistake("any-percent", answer / 100)]
    if whole:
        found += [mistake("any-one-off", answer + 1), mistake("any-one-off", answer - 1)]
    elif answer:
        found += [mistake("any-reciprocal", 1 / answer)]
    return found


def general(name: str) -> str:
    """What is said of a misconception that every number, or every cell, may show; empty of any other name."""
    before, after = _("the token before the right one"), _("the token after the right one")
    return {
        "any-sign": _("The sign is wrong, the size is right."),
        "any-percent": _("That is 100 times too much or too little: you mixed up a share and its percentage."),
        "any-one-off": _("That is one too many or one too few: count the first and the last one again."),
        "any-reciprocal": _("That is the reciprocal: you exchanged the two numbers of the quotient."),
        "any-transposed": _("You exchanged row and column: the row is the query, the column is the key."),
        "any-row": _("The column is right, but this row is another query."),
        "any-row-before": _("This is the row of {neighbour}.", neighbour=before),
        "any-row-after": _("This is the row of {neighbour}.", neighbour=after),
        "any-column": _("The row is right, but this column is another token."),
        "any-column-before": _("This is the column of {neighbour}.", neighbour=before),
        "any-column-after": _("This is the column of {neighbour}.", neighbour=after),
    }.get(name, "")


def of_cell(given: Cell, answer: Cell, grid: Grid) -> str:
    """The misconception that gives a wrong cell, with what that cell holds."""
    row, column = given
    place = {"row": grid.rows[row], "column": grid.columns[column]}
    values = {**place, "value": f"{grid.values[given]:.3f}", "best": f"{grid.values[answer]:.3f}"}
    if not grid.looks:
        return _("Your cell holds {value}, the right one {best}.", **values)
    holds = _("Your cell shows how much “{row}” attends to “{column}”: {value}.", **values)
    return f"{general(cell_mistake(given, answer))} {holds}".strip()


def cell_mistake(given: Cell, answer: Cell) -> str:
    """The name of the misconception of a wrong cell, by how it lies to the right one; empty where none is known."""
    rows, columns = given[0] - answer[0], given[1] - answer[1]
    if given == answer[::-1]:
        return "any-transposed"
    if rows and columns:
        return ""
    return ("any-row" if rows else "any-column") + {-1: "-before", 1: "-after"}.get(rows + columns, "")
