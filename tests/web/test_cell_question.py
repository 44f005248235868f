"""The question that is answered by a cell of a picture."""

import pytest
from streamlit.testing.v1 import AppTest

from tests.components.test_mount import sent

SCRIPT = """
import numpy as np
import streamlit as st
from vizformer.web.widgets.cell_question import ask_cell
from vizformer.web.widgets.misconceptions import Grid
from vizformer.web.widgets.questions import CellChoice

grid = Grid(["a → *b*", "b"], ["x", "y", "z"], np.array([[0.1, 0.7, 0.2], [0.3, 0.3, 0.4]]))
ask_cell(CellChoice("cross", "where", "Which cell?", grid, (0, 1), "It is y.", st.session_state.get("about", "one")))
"""
GRID, ROW, COLUMN, BUTTON = (f"ask.cross.where.{part}.one" for part in ("grid", "row", "column", "button"))


@pytest.fixture
def app() -> AppTest:
    return AppTest.from_string(SCRIPT, default_timeout=20).run()


def click(app: AppTest, row: int, column: int) -> AppTest:
    app.session_state[GRID] = {"selected": {"row": row, "column": column}}
    return app.run()


def show(app: AppTest) -> AppTest:
    return app.button(BUTTON).click().run()


def test_the_picture_is_empty_until_the_answer_is_shown(app: AppTest) -> None:
    assert not app.exception
    data = sent(app)
    assert (data["values"], data["right"], data["selected"]) == (None, None, None)
    assert data["rows"] == ["a → *b*", "b"]
    assert app.button(BUTTON).disabled
    app = show(click(app, 0, 1))
    data = sent(app)
    assert data["values"] == [[0.1, 0.7, 0.2], [0.3, 0.3, 0.4]]
    assert data["right"] == {"row": 0, "column": 1}
    assert [box.value for box in app.success] == ["**Right.** It is y\\."]
    assert all(box.disabled for box in app.selectbox)


def test_a_click_is_shown_in_the_boxes_and_a_choice_there_in_the_picture(app: AppTest) -> None:
    app = click(app, 1, 2)
    assert (app.selectbox(ROW).value, app.selectbox(COLUMN).value) == (1, 2)
    assert not app.button(BUTTON).disabled
    app = app.selectbox(ROW).set_value(0).run()
    assert sent(app)["selected"] == {"row": 0, "column": 2}
    app = show(app)
    (said,) = (box.value for box in app.error)
    assert said.startswith(r"**Not quite: row “a → \*b\*”\, column “y”.** This is the column of the token after")
    assert said.endswith("\n\nIt is y\\.")


def test_the_boxes_alone_are_enough(app: AppTest) -> None:
    app = app.selectbox(ROW).set_value(0).run()
    assert app.button(BUTTON).disabled
    app = app.selectbox(COLUMN).set_value(1).run()
    assert not show(app).error


def test_an_answer_counts_once_and_another_subject_opens_the_question_again(app: AppTest) -> None:
    app = show(click(app, 0, 0))
    assert app.session_state["vizformer.done"] == frozenset({"cross/where"})
    app.session_state["about"] = "two"
    app = app.run()
    assert not app.error
    assert sent(app)["values"] is None
    assert app.session_state["vizformer.done"] == frozenset({"cross/where"})
