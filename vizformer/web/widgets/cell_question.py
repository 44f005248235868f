"""A question that is answered by a cell of a picture: "which cell ...?", with a click or with two boxes.

    ask_cell(CellChoice("cross", "where", question, Grid(rows, columns, weights), answer, why, about=...))

The picture is empty until the answer is shown; then its cells hold their numbers, and the right one is marked.
"""

import streamlit as st

from vizformer.components import cells
from vizformer.components.cells import Cell
from vizformer.web.widgets import class_question, questions
from vizformer.web.widgets.misconceptions import Grid
from vizformer.web.widgets.questions import CellChoice
from vizformer.web.words.i18n import _

LARGEST = cells.LARGEST  # rows and columns of a picture that can be asked about


def ask_cell(asked: CellChoice) -> None:
    """Asks for a cell, and shows the answer afterwards."""
    grid, answer, about = asked.grid, asked.answer, asked.about
    key, shown = questions.keys(asked.lesson, asked.name, about)
    row, column = f"{key}.row.{about}", f"{key}.column.{about}"
    with st.container(border=True, key=key):
        questions.predict(asked.question)
        part = class_question.part_of(asked.lesson, asked.name)
        over = part == "shown" or (part != "student" and bool(st.session_state.get(shown)))
        picked = _picked(row, column)
        clicked = cells.mount(
            grid.rows,
            grid.columns,
            values=grid.values if over else None,
            right=answer if over else None,
            selected=picked,
            key=f"{key}.grid.{about}",
        )
        if not over and clicked is not None and clicked != picked:
            st.session_state[row], st.session_state[column] = picked = clicked
        _boxes(grid, row, column, disabled=over)
        picked = _picked(row, column)
        if questions.settle(asked, picked, None if picked is None else f"{picked[0]},{picked[1]}"):
            questions.told(asked, picked)
        questions.lead(
            asked,
            bars=(),
            named=lambda one: questions.cell_name(grid, _cell(one)),
            right=lambda one: _cell(one) == answer,
        )
    questions.count(key)


def _boxes(grid: Grid, row: str, column: str, *, disabled: bool) -> None:
    """Draws two lists, row and column, to choose the cell by keyboard."""
    named = ((row, _("Row"), grid.rows), (column, _("Column"), grid.columns))
    for place, (key, label, texts) in zip(st.columns(2), named, strict=True):
        names = [f"{index} · {text}" for index, text in enumerate(texts)]
        place.selectbox(
            label,
            range(len(names)),
            index=None,
            format_func=names.__getitem__,
            key=key,
            disabled=disabled,
            placeholder=_("or click a cell"),
        )


def _picked(row: str, column: str) -> Cell | None:
    at, of = st.session_state.get(row), st.session_state.get(column)
    return (at, of) if isinstance(at, int) and isinstance(of, int) else None


def _cell(sent: str) -> Cell:
    row, column = sent.split(",")
    return int(row), int(column)
