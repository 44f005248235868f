"""A map of shares of a difference, of which as much is shown as can be drawn, and in which a click chooses a cell."""

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from vizformer import figures
from vizformer.components import cells
from vizformer.web.widgets import lesson
from vizformer.web.widgets.chart import Picture, caption, take_away
from vizformer.web.words.i18n import _

CELL, ACROSS, DOWN = "whatif.cell", "whatif.across", "whatif.down"
Place = tuple[int, int]


def window(shape: tuple[int, ...]) -> Place:
    """The first row and column that are shown: all, or as many as can be drawn from where a slider says."""
    first = []
    for name, label, n in ((DOWN, _("Rows from"), shape[0]), (ACROSS, _("Columns from"), shape[1])):
        last = n - cells.LARGEST
        if last > 0:
            st.slider(label, 0, last, **lesson.setting(name, 0, range(last + 1)))
        first.append(lesson.value(name, 0, range(last + 1)) if last > 0 else 0)
    return first[0], first[1]


def chosen_cell(values: NDArray[np.floating], first: Place, key: str) -> Place:
    """The cell that was clicked last, in either map; else the one that a link names, or the strongest."""
    row, column = np.unravel_index(int(np.nanargmax(np.abs(values))), values.shape)
    cell = read_cell(lesson.value(CELL, ""), values) or (int(row), int(column))
    shown = inside(cell, first)
    for own in (f"what_if.measured.{key}", f"what_if.estimated.{key}"):
        clicked = cells.peek(key=own, selected=shown)
        if clicked is None or clicked == shown:
            continue
        place = clicked[0] + first[0], clicked[1] + first[1]
        if read_cell(f"{place[0]}.{place[1]}", values) is not None:
            lesson.change(CELL, f"{place[0]}.{place[1]}", "")
            return place
    return cell


def inside(cell: Place, first: Place) -> Place | None:
    """A cell as it is counted among those that are shown; None where it is not one of them."""
    row, column = cell[0] - first[0], cell[1] - first[1]
    return (row, column) if 0 <= row < cells.LARGEST and 0 <= column < cells.LARGEST else None


def read_cell(written: str, values: NDArray[np.floating]) -> Place | None:
    """The cell of a link, such as 3.5; None for anything else, and for a head that its layer does not have (NaN)."""
    parts = written.split(".")
    if len(parts) != 2 or not all(part.isascii() and part.isdigit() and len(part) < 6 for part in parts):
        return None
    row, column = int(parts[0]), int(parts[1])
    inside = row < values.shape[0] and column < values.shape[1]
    return (row, column) if inside and np.isfinite(values[row, column]) else None


def one_map(
    values: NDArray[np.floating], title: str, names: tuple[list[str], list[str]], chosen: Place, first: Place, key: str
) -> None:
    """One of the maps; a click chooses a cell."""
    st.markdown(f"**{title}**")
    rows, columns = (slice(at, at + cells.LARGEST) for at in first)
    said = {
        "grid_label": _("Shares of the difference. The arrow keys move from cell to cell, Enter chooses one."),
        "cell": "{row_token}, {column_token}",
        "none": _("No cell is chosen."),
    }
    cells.mount(
        names[0][rows],
        names[1][columns],
        values=values[rows, columns],
        signed=True,
        selected=inside(chosen, first),
        words=said,
        key=key,
    )
    take_away(
        Picture("patches", caption(title), lambda: figures.matrix_heatmap(values, names[0], names[1], title=title)),
        key=key,
    )
