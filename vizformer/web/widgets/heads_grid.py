"""All heads of one kind of attention as a grid, coloured by a number of each; the head that is shown, and a click on one."""

from collections.abc import Callable
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from vizformer.components import cells
from vizformer.figures.figure import Figure
from vizformer.web.link import state
from vizformer.web.widgets import chart, data_table
from vizformer.web.widgets.downloads import Picture, take_away
from vizformer.web.words.i18n import _

ROW = 35  # px of a row of the table

Place = tuple[int, int]


def open_on_the_largest(values: NDArray[np.floating]) -> bool:
    """Shows the head with the largest value where nobody has chosen one; whether it does."""
    layer, head = np.unravel_index(int(np.where(np.isfinite(values), values, -np.inf).argmax()), values.shape)
    return state.suggest(layer=int(layer), head=int(head))


def grid(
    values: NDArray[np.floating],
    place: Place | None,
    figure: Callable[[], Figure],
    picture: Picture | None,
    *,
    key: str,
    columns: list[str] | None = None,
    chooses: Callable[[Place], Place] = lambda cell: cell,
    texts: list[list[str]] | None = None,
    said: dict[str, str] | None = None,
) -> None:
    """A cell for every head; a click chooses it.

    Args:
        values: [layers, heads], from 0 to 1.
        figure: the same as a figure: drawn where there are too many heads for a grid, or one has no number.
        columns: what they are called, where they are no heads.
        said: words of the grid that are not the usual ones.
    """
    if max(values.shape) > cells.LARGEST or not np.isfinite(values).all() or values.min() < 0 or values.max() > 1:
        chart.show(figure(), key=f"{key}.picture")
        return
    usual = {
        "grid_label": _(
            "Rows are layers, columns are heads. The arrow keys move from cell to cell, Enter chooses one."
        ),
        "cell": _("layer {row}, head {column}"),
        "none": _("No head is chosen."),
    }
    chosen = cells.mount(
        [_("L{layer}", layer=layer) for layer in range(values.shape[0])],
        columns or [_("H{head}", head=head) for head in range(values.shape[1])],
        values=values,
        texts=texts,
        selected=place,
        words=usual | (said or {}),
        key=f"{key}.cells",
    )
    if picture is not None:
        take_away(picture, key=f"{key}.cells")
    if chosen is not None and chosen != place:
        layer, head = chooses(chosen)
        state.update(layer=layer, head=head)


def table(columns: dict[str, Any], places: list[Place], *, key: str, most_rows: int, **more: Any) -> None:
    """Numbers of heads; a click on a row chooses its head."""

    def take() -> None:
        rows = st.session_state[f"{key}.table"]["selection"]["rows"]
        if rows and rows[0] < len(places):
            state.update(layer=places[rows[0]][0], head=places[rows[0]][1])

    data_table.show(
        columns,
        hide_index=True,
        height=ROW * (1 + min(len(places), most_rows)) + 2,
        on_select=take,
        selection_mode="single-row",
        key=f"{key}.table",
        **more,
    )


def in_order(values: NDArray[np.floating]) -> list[Place]:
    """All heads, the largest values first, those without a number last."""
    order = np.argsort(-np.where(np.isfinite(values), values, -np.inf), axis=None, kind="stable")
    return [(int(index) // values.shape[1], int(index) % values.shape[1]) for index in order]
