"""Wrong answers: each names its misconception, in both languages, and is asked again in other words."""

import math
from collections.abc import Iterator
from importlib import import_module

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from vizformer.components import memory
from vizformer.errors import VizformerError
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import progress
from vizformer.web.frame.sitemap import COURSE
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.widgets import lab
from vizformer.web.widgets.misconceptions import Grid, of_cell, of_number
from vizformer.web.widgets.questions import CellChoice, Choice, Number, Question
from vizformer.web.words import lesson_words

SENTENCES = ("我有一只猫。", "他昨天在学校里读了一本很长的书。", "今天天气很好。")
LESSONS = [entry.url for entry in COURSE]


def asked(lesson: str, sentence: str, model: str = "zh-en") -> Iterator[Question]:
    subject = Subject(ModelRef("bundled", model), sentence, "")
    for make in lab.questions(import_module(f"vizformer.web.lessons.{lesson}").PARTS).values():
        try:
            question = make(subject)
        except VizformerError:
            continue
        if question is not None:
            yield question


def speak(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    monkeypatch.setattr(lesson_words, "language", lambda: code)


@pytest.mark.parametrize("lesson", LESSONS)
@pytest.mark.parametrize("code", ["en", "zh_CN"])
def test_every_wrong_answer_names_its_misconception(lesson: str, code: str, monkeypatch) -> None:
    speak(monkeypatch, code)
    for model, sentence in (("zh-en", SENTENCES[0]), ("stories", "The cat sat on the chair.")):
        for question in asked(lesson, sentence, model):
            where = (question.lesson, question.name)
            assert question.again, where
            assert question.again != question.question, where
            if isinstance(question, Choice):
                said = [question.mistake(i) for i in range(len(question.choices)) if i != question.answer]
                assert all(said), where
            elif isinstance(question, Number) and math.isfinite(question.answer):
                wrong = {
                    one.given for one in question.mistakes if abs(one.given - question.answer) > question.tolerance
                }
                assert wrong, where
                assert all(question.mistake(number) for number in wrong), where
            elif isinstance(question, CellChoice):
                row, column = question.answer
                others = [(r, c) for r in range(len(question.grid.rows)) for c in range(len(question.grid.columns))]
                assert all(question.mistake(cell) for cell in others if cell != (row, column)), where


@pytest.mark.parametrize("sentence", SENTENCES)
def test_near_misses_of_a_number_are_other_numbers(sentence: str) -> None:
    found = [question for lesson in LESSONS for question in asked(lesson, sentence) if isinstance(question, Number)]
    assert len(found) >= 25
    for question in found:
        given = [one.given for one in question.mistakes]
        assert len({f"{number:.6g}" for number in given}) == len(given), (question.lesson, question.name, given)
        assert all(math.isfinite(number) for number in given)


def test_numbers_are_told_the_usual_mistakes() -> None:
    for given, words in ((-6.28, "sign"), (1 / 6.28, "reciprocal"), (628.0, "100 times"), (0.0628, "100 times")):
        assert words in of_number(given, 6.28, 0.001, [], "{:g}".format)
    assert "one too many" in of_number(8, 7, 0, [], "{:g}".format)
    assert of_number(5, 7, 0, [], "{:g}".format) == ""


def test_a_cell_is_told_how_it_lies_to_the_right_one() -> None:
    grid = Grid(["a", "b", "c"], ["a", "b", "c"], np.arange(9).reshape(3, 3) / 10)
    for cell, words in (
        ((0, 2), "exchanged row and column"),
        ((1, 0), "before the right one"),
        ((2, 1), "after the right one"),
    ):
        said = of_cell(cell, (2, 0), grid)
        assert words in said, cell
        assert f"{grid.values[cell]:.3f}" in said
    assert "0.200" in of_cell((0, 1), (0, 2), Grid(grid.rows, grid.columns, grid.values, looks=False))


def two_parts() -> None:
    import streamlit as st

    from vizformer.web.frame import progress

    st.session_state["vizformer.missed"] = dict(st.session_state.get("vizformer.missed", {}))
    for right, again in st.session_state.get("judged", []):
        progress.judge("masks", "leak", right=right, again=again)
    st.session_state["due"] = [one[:2] for one in progress.due()]


@pytest.mark.parametrize(
    ("judged", "soon", "next_day"),
    [
        ([(True, False)], False, False),  # right at once
        ([(False, False)], True, True),  # wrong: in the next part
        ([(False, False), (True, True)], False, True),  # and once more the next day
        ([(False, False), (False, True)], False, True),
        ([(False, False), (True, True), (True, True)], False, False),  # settled
    ],
)
def test_a_question_that_was_missed_comes_again(monkeypatch, judged, soon, next_day) -> None:
    app = AppTest.from_function(two_parts, default_timeout=60)
    app.session_state["judged"] = judged
    app = app.run()
    assert app.session_state["due"] == ([("masks", "leak")] if soon else [])
    app.session_state["judged"] = []
    now = progress._now()
    monkeypatch.setattr(progress, "_now", lambda: now + memory.NEXT_DAY + 60_000)
    app = app.run()
    assert app.session_state["due"] == ([("masks", "leak")] if next_day else [])
