"""A question that is answered by a cell of a picture: "which cell ...?", with a click or with two boxes.

    ask_cell("cross", "where", question, Grid(rows, columns, weights), answer, why, about=...)

The picture is empty until the answer is shown; then its cells hold their numbers, and the right one is marked.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st

from vizformer.components import cells
from vizformer.components.cells import Cell
from vizformer.web.widgets import questions
from vizformer.web.words.figure_words import words
from vizformer.web.words.i18n import _

if TYPE_CHECKING:
    import numpy as np
    from jaxtyping import Float

LARGEST = cells.LARGEST
"""Rows and columns of a picture that can be asked about."""


@dataclass(frozen=True, eq=False)
class Grid:
    """What is clicked.

    Attributes:
        rows, columns: the tokens of the queries and of the keys; they may repeat.
        values: shares of 1, shown with the answer.
    """

    rows: Sequence[str]
    columns: Sequence[str]
    values: "Float[np.ndarray, 'rows columns']"


def ask_cell(lesson: str, name: str, question: str, grid: Grid, answer: Cell, why: str, about: str = "") -> None:
    """A question to be answered before the answer is shown; `vizformer.web.widgets.lesson.ask` for a picture.

    Args:
        lesson, name: as listed in `progress.QUESTIONS`.
        question, why: in the reader's language; plain text (what was typed may be in it).
        grid: at most `LARGEST` rows and columns.
        answer: the right cell, (row, column).
        about: what the question is about (the text, a setting): when it changes, the question is open again.
    """
    key, shown = questions.keys(lesson, name, about)
    row, column = f"{key}.row.{about}", f"{key}.column.{about}"
    with st.container(border=True, key=key):
        questions.predict(question)
        over = bool(st.session_state.get(shown))
        picked = _picked(row, column)
        clicked = cells.mount(
            grid.rows,
            grid.columns,
            values=grid.values if over else None,
            right=answer if over else None,
            selected=picked,
            words=words(cells.ENGLISH),
            key=f"{key}.grid.{about}",
        )
        if not over and clicked is not None and clicked != picked:
            st.session_state[row], st.session_state[column] = picked = clicked
        _boxes(grid, row, column, disabled=over)
        picked = _picked(row, column)
        if not over:
            st.button(
                _("Show the answer"),
                disabled=picked is None,
                on_click=questions.reveal,
                args=(lesson, name, shown),
                key=f"{key}.button.{about}",
            )
            return
        said = _("row “{row}”, column “{column}”", row=grid.rows[answer[0]], column=grid.columns[answer[1]])
        questions.verdict(picked == answer, said, why)
    questions.count(key)


def _boxes(grid: Grid, row: str, column: str, *, disabled: bool) -> None:
    """The same choice for the keyboard, as two lists."""
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
