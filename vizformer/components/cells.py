"""A grid of cells, one of which can be chosen: the picture of a question "which cell ...?".

    chosen = mount(["a → cat"], ["我", "猫"], selected=chosen, words=words, key="which")

Rows are queries, columns are keys.  Before the answer is shown the cells are empty; then they hold their numbers.  Where
there is a text for every cell, it stands there instead, and the number is only its colour.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vizformer.components import _mount
from vizformer.components.packing import count, short
from vizformer.word_tables import words_of

LARGEST = 24  # rows and columns that can be drawn: cells of more could not be hit on a phone

Cell = tuple[int, int]  # row and column, counted from 0

ENGLISH: Mapping[str, str] = words_of(__file__)

_WRITTEN = (2, 4)  # decimals: in a cell, and when one points at it

_COMPONENT = _mount.Component("cells", ENGLISH)


def peek(*, key: str, selected: Cell | None = None) -> Cell | None:
    """The cell that the next `mount` with this key and `selected` will return, for content drawn above it."""
    return _mount.current(key, selected, _parse, ahead=True)[0]


def mount(
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    values: NDArray[np.floating] | None = None,
    texts: Sequence[Sequence[str]] | None = None,
    signed: bool = False,
    right: Cell | None = None,
    selected: Cell | None = None,
    words: Mapping[str, str] | None = None,
    key: str,
) -> Cell | None:
    """Shows the grid on a Streamlit page; the chosen cell, if there is one.

    Args:
        values: shares of 1, shown in the cells by colour and number; None leaves them empty, NaN one [rows, columns].
        texts: shown in the cells instead of the numbers [rows, columns].
        signed: the values may be below 0: orange there, blue above; -1 and 1 have the full colour, and what is beyond.
        words: those that are not the usual ones.
        right: a cell that is marked as the answer; then nothing can be chosen any more.
    """
    data = _data(rows, columns, values, texts, signed, right)
    shown, echo = _mount.current(key, selected, _parse)
    _COMPONENT.mount(data, words=words, version=echo.version, selected=_state(echo.sent), key=key)
    return shown if shown is not None and shown[0] < len(rows) and shown[1] < len(columns) else None


def to_html(
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    values: NDArray[np.floating] | None = None,
    texts: Sequence[Sequence[str]] | None = None,
    signed: bool = False,
    right: Cell | None = None,
    selected: Cell | None = None,
    title: str = "Cells",
) -> _mount.Html:
    """Returns the grid as one HTML file that works without a server."""
    data = _data(rows, columns, values, texts, signed, right)
    return _COMPONENT.page(data, selected=_state(selected), title=title)


def _state(cell: Cell | None) -> dict[str, int] | None:
    return None if cell is None else {"row": cell[0], "column": cell[1]}


def _parse(report: Mapping[str, Any]) -> Cell | None:
    row, column = count(report.get("row")), count(report.get("column"))
    return None if row is None or column is None else (row, column)


def _data(
    rows: Sequence[str],
    columns: Sequence[str],
    values: NDArray[np.floating] | None,
    texts: Sequence[Sequence[str]] | None,
    signed: bool,
    right: Cell | None,
) -> dict[str, Any]:
    shape = (len(rows), len(columns))
    if max(shape) > LARGEST:
        raise ValueError(f"{shape[0]} rows and {shape[1]} columns are more than the {LARGEST} that can be drawn")
    if values is not None and np.shape(values) != shape:
        raise ValueError(f"values of shape {np.shape(values)} do not fit {shape[0]} rows and {shape[1]} columns")
    if texts is not None and (values is None or len(texts) != shape[0] or any(len(row) != shape[1] for row in texts)):
        raise ValueError(f"texts need values, and one for each of {shape[0]} rows and {shape[1]} columns")
    if right is not None and not (0 <= right[0] < shape[0] and 0 <= right[1] < shape[1]):
        raise ValueError(f"the right cell {right} is outside of {shape[0]} rows and {shape[1]} columns")
    return {
        "rows": list(rows),
        "columns": list(columns),
        "values": None
        if values is None
        else [[None if np.isnan(x) else short(float(x), _WRITTEN) for x in row] for row in values],
        "texts": None if texts is None else [list(row) for row in texts],
        "signed": signed,
        "right": _state(right),
    }
