"""A one-hot row, the table it selects from, and the row it selects, as HTML tables with long sides elided."""

from collections.abc import Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

from vizformer.components.matrix import number

Places = Sequence[int | None]  # indices that are shown, in order; None where some are left out


def around(index: int, count: int) -> list[int | None]:
    """The first two places, those on both sides of `index`, and the last of `count`, with dots between.

    >>> around(5, 100)
    [0, 1, None, 4, 5, 6, None, 99]
    """
    shown = sorted({0, 1, index - 1, index, index + 1, count - 1} & set(range(count)))
    places: list[int | None] = []
    for place in shown:
        if places and place != shown[0] and place - 1 not in shown:
            places.append(None)
        places.append(place)
    return places


def head(count: int, shown: int = 4) -> list[int | None]:
    """The indices of the first cells and the last one of `count`, with None for those that are left out."""
    return list(range(count)) if count <= shown + 1 else [*range(shown), None, count - 1]


def to_html(
    value: NDArray[np.floating],
    *,
    rows: Places,
    columns: Places,
    caption: str,
    shape: str,
    row_names: Sequence[str] = (),
    column_names: Sequence[str] = (),
    chosen_row: int | None = None,
    chosen_column: int | None = None,
    digits: int = 4,
) -> str:
    """A table of which only some rows and columns are given.

    `value`: [shown rows, shown columns], the places that are not None, in order.
    """
    wanted = tuple(sum(place is not None for place in places) for places in (rows, columns))
    if value.shape != wanted:
        raise ValueError(f"values of shape {value.shape} do not fit {wanted} places")
    names = iter(column_names)
    top = "".join("<th>…</th>" if c is None else _label(c, next(names, "")) for c in columns)
    body, given, beside = [], iter(np.asarray(value, dtype=np.float64)), iter(row_names)
    for r in rows:
        if r is None:
            body.append("<tr><th>⋮</th>" + "<td>⋮</td>" * len(columns) + "</tr>")
            continue
        numbers = iter(next(given))
        cells = "".join(
            "<td>…</td>" if c is None else _cell(float(next(numbers)), r == chosen_row or c == chosen_column, digits)
            for c in columns
        )
        body.append(f"<tr>{_label(r, next(beside, ''))}{cells}</tr>")
    return (
        f'<div class="vf-matrix"><table><caption>{escape(caption)} <span>[{escape(shape)}]</span></caption>'
        f"<thead><tr><th></th>{top}</tr></thead><tbody>{''.join(body)}</tbody></table></div>"
    )


def _label(index: int, name: str) -> str:
    return f"<th><i>{index}</i>{escape(name)}</th>"


def _cell(value: float, chosen: bool, digits: int) -> str:
    style = ' style="background-color:rgba(230,159,0,0.35);font-weight:700"' if chosen else ""
    return f"<td{style}>{number(value, digits)}</td>"
