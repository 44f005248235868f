"""Questions of the lessons: predict first, then the answer is shown.

A question is data, so that a lesson asks it on the screen and the worksheet prints the same one:

    Choice("masks", "leak", question, choices, answer, why)
    Number("block", "count", question, 18_914_304, why)
    Number("block", "length", question, 15.9, why, tolerance=0.1)
    CellChoice("cross", "cell", question, Grid(rows, columns, weights), (row, column), why)
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import streamlit as st

from vizformer.components.cells import Cell
from vizformer.errors import VizformerError
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import class_door, progress
from vizformer.web.frame.class_door import Outcome
from vizformer.web.widgets import class_question
from vizformer.web.widgets.misconceptions import Grid, Mistake, cell_mistake, number_mistake, of_cell, of_number
from vizformer.web.words.errors import plain
from vizformer.web.words.i18n import _, show_note


@dataclass(frozen=True)
class Choice:
    # lesson, name: as listed in `progress.QUESTIONS`
    lesson: str
    name: str
    # question, choices, why: in the reader's language; plain text (what was typed may be in it)
    question: str
    choices: Sequence[str]
    answer: int
    why: str
    about: str = ""  # what the question is about (the text, a setting): when it changes, the question is open again
    # whether the choices are the lines of a program, with spaces before them: set as code and counted from 1
    code: bool = False
    again: str = ""  # the question in other words, for a later part or the next day
    mistakes: Sequence[Mistake] = ()  # the misconception behind each wrong choice, by its index

    @property
    def said(self) -> str:
        return self.written(self.answer)

    def written(self, choice: int) -> str:
        return line_number(choice) if self.code else self.choices[choice]

    def mistake(self, choice: int) -> str:
        """The misconception behind a wrong choice."""
        return next((one.said(self.written(choice)) for one in self.mistakes if one.given == choice), "")

    def outcome(self, choice: int) -> Outcome:
        name = next((one.name for one in self.mistakes if one.given == choice), "")
        return Outcome(choice == self.answer, name)

    @property
    def other_way_round(self) -> "Choice":
        """The question in other words, and its choices (unless they are a program) from the last to the first."""
        other = replace(self, question=self.again)
        if self.code:
            return other
        last = len(self.choices) - 1
        mistakes = [replace(one, given=last - one.given) for one in self.mistakes]
        return replace(other, choices=self.choices[::-1], answer=last - self.answer, mistakes=mistakes)


@dataclass(frozen=True)
class Number:
    """A question whose answer is a number that the reader enters; it is right within a tolerance that stands beside it.

    It is right within `tolerance`, in the unit that the question names; 0: only the number itself, which is whole then.
    """

    lesson: str
    name: str
    question: str
    answer: float
    why: str
    tolerance: float = 0.0
    written: Callable[[float], str] = "{:,g}".format
    about: str = ""
    again: str = ""
    mistakes: Sequence[Mistake] = ()

    @property
    def said(self) -> str:
        return self.written(self.answer)

    def mistake(self, given: float) -> str:
        """The misconception behind a wrong number; empty where none is known."""
        return of_number(given, self.answer, self.tolerance, self.mistakes, self.written)

    def outcome(self, given: float) -> Outcome:
        found = number_mistake(given, self.answer, self.tolerance, self.mistakes)
        return Outcome(abs(given - self.answer) <= self.tolerance, found.name if found else "")

    @property
    def other_way_round(self) -> "Number":
        return replace(self, question=self.again)

    @property
    def asks_for(self) -> str:
        """What is to be entered, and how near it has to be."""
        if self.tolerance:
            return _("Your number (right within ± {tolerance})", tolerance=f"{self.tolerance:g}")
        return _("Your number (exact)")


@dataclass(frozen=True, eq=False)
class CellChoice:
    lesson: str
    name: str
    question: str
    grid: Grid
    answer: Cell
    why: str
    about: str = ""
    again: str = ""
    mistakes: Sequence[Mistake] = ()  # none of its own: those of all cells

    @property
    def said(self) -> str:
        return cell_name(self.grid, self.answer)

    def mistake(self, cell: Cell) -> str:
        """The misconception behind a wrong cell."""
        return of_cell(cell, self.answer, self.grid)

    def outcome(self, cell: Cell) -> Outcome:
        return Outcome(cell == self.answer, cell_mistake(cell, self.answer) if self.grid.looks else "")

    @property
    def other_way_round(self) -> "CellChoice":
        return replace(self, question=self.again)


def near(answer: float, share: float, least: float) -> float:
    """A tolerance of at most this share of the answer, or `least`: a power of ten, which does not tell the answer."""
    if not math.isfinite(answer):
        return least
    return max(least, 10.0 ** math.floor(math.log10(share * answer)))


Question = Choice | Number | CellChoice
Registry = Mapping[str, Callable[[Subject], Question | None]]
"""The questions of a lesson, by their names in the order of its parts; None where a text or a model has none to offer.

A lesson asks them about what its boxes are set to; these ask about what they are set to at first.
"""


def asked_again(lesson: str, name: str, missed: int, subject: Subject) -> Question | None:
    """A question of `progress.QUESTIONS` in other words, about what is set at first; None where this text has none.

    `missed` is when it was judged last: asked another time, it is open again.
    """
    found = of_lesson(lesson, name, subject)
    return None if found is None else replace(found.other_way_round, about=f"{found.about} again {missed}")


def of_lesson(lesson: str, name: str, subject: Subject) -> Question | None:
    """A question of `progress.QUESTIONS` about what is set at first; None where this text has none."""
    parts = import_module(f"vizformer.web.lessons.{lesson}").PARTS  # perhaps not opened since the program began
    try:
        found: Question | None = next(part.questions[name] for part in parts if name in part.questions)(subject)
    except VizformerError:  # a model of somebody else's may lack what the question is about
        return None
    return found


def cell_name(grid: Grid, cell: Cell) -> str:
    row, column = cell
    return _("row “{row}”, column “{column}”", row=grid.rows[row], column=grid.columns[column])


def ask(asked: Choice) -> None:
    key, __ = keys(asked.lesson, asked.name, asked.about)
    choices = asked.choices
    with st.container(border=True, key=key):
        predict(asked.question)
        picked = st.radio(
            _("Your answer"),
            range(len(choices)),
            index=None,
            format_func=lambda i: line(i, choices[i]) if asked.code else plain(choices[i]),
            label_visibility="collapsed",
            key=f"{key}.choice.{asked.about}",
        )
        if settle(asked, picked, None if picked is None else str(picked)):
            told(asked, picked)
        lead(
            asked,
            bars=[str(i) for i in range(len(choices))],
            named=lambda one: line_number(int(one)) if asked.code else choices[int(one)],
            right=lambda one: int(one) == asked.answer,
        )
    count(key)


def settle(asked: Question, given: Any, picked: str | None) -> bool:
    """The button below what was given; whether the answer is to be shown.

    picked: what was given, as it is sent to a class; None where nothing was yet.
    Alone, the button shows the answer.  Where a class is asked, it sends what was picked, and the teacher shows the answer.
    """
    key, shown = keys(asked.lesson, asked.name, asked.about)
    part = class_question.part_of(asked.lesson, asked.name)
    if part == "student":
        outcome = None if picked is None else asked.outcome(given)
        class_question.send(asked.lesson, asked.name, picked, key=key, outcome=outcome)
        return False
    if part == "shown" and picked is not None and not st.session_state.get(shown):
        reveal(asked.lesson, asked.name, shown)  # answered, like any other
    if part == "shown" or st.session_state.get(shown):
        return True
    st.button(
        _("Show the answer"),
        disabled=picked is None,
        on_click=reveal,
        args=(asked.lesson, asked.name, shown),
        key=f"{key}.button.{asked.about}",
    )
    return False


def lead(asked: Question, *, bars: Sequence[str], named: Callable[[str], str], right: Callable[[str], bool]) -> None:
    """For the teacher of a class, below the question: asks it to the class, and shows the answers as bars."""
    key, shown = keys(asked.lesson, asked.name, asked.about)
    if class_question.part_of(asked.lesson, asked.name) == "teacher":

        def show() -> None:
            st.session_state[shown] = True

        class_question.lead(asked.lesson, asked.name, key=key, bars=bars, named=named, right=right, show=show)


def is_answered(lesson: str, name: str, about: str = "") -> bool:
    return bool(st.session_state.get(keys(lesson, name, about)[1]))


def line_number(index: int) -> str:
    """The label of a line of a program."""
    return _("line {n}", n=index + 1)


def line(index: int, line: str) -> str:
    """A line of a program (without backticks) as Markdown that keeps the spaces before it."""
    return "`" + f"{index + 1:>2}  {line}".replace(" ", "\u00a0") + "`"


def ask_number(asked: Number) -> None:
    key, shown = keys(asked.lesson, asked.name, asked.about)
    typed, part = f"{key}.number.{asked.about}", class_question.part_of(asked.lesson, asked.name)
    with st.container(border=True, key=key):
        predict(asked.question)
        with st.form(f"{key}.form.{asked.about}", border=False):  # one click both takes the number and shows the answer
            given = st.number_input(
                asked.asks_for,
                value=None,
                step=None if asked.tolerance else 1,
                format=None if not asked.tolerance else "%g",
                key=typed,
            )
            if part == "student":
                class_question.send_typed(asked.lesson, asked.name, typed, key=key, outcome=asked.outcome)
            else:
                st.form_submit_button(
                    _("Show the answer"),
                    on_click=_reveal_number,
                    args=(asked.lesson, asked.name, shown, typed),
                    key=f"{key}.button.{asked.about}",
                )
        if part == "shown" or (part != "student" and st.session_state.get(shown)):
            if given is None and part == "nobody":
                show_note("Enter a number first.")
            else:
                if part == "shown" and given is not None and not st.session_state.get(shown):
                    reveal(asked.lesson, asked.name, shown)
                told(asked, given)
        lead(
            asked,
            bars=(),
            named=lambda one: asked.written(float(one)),
            right=lambda one: asked.outcome(float(one)).right,
        )
    count(key)


def keys(lesson: str, name: str, about: str) -> tuple[str, str]:
    key = f"ask.{lesson}.{name}"
    return key, f"{key}.shown.{about}"


def predict(text: str) -> None:
    """The question, to be answered before the answer is shown."""
    predict = _("Predict first.")  # the extractor does not look into f-strings
    st.markdown(f"**{predict}** {plain(text)}")


def told(asked: Question, given: Any) -> None:
    """Says whether it was right (`given` None: nothing was answered), the misconception where it was not, and why.

    What was answered just now is noted: a wrong answer is asked again later, and a class counts the first one.
    """
    key, __ = keys(asked.lesson, asked.name, asked.about)
    answer, why = plain(asked.said), plain(asked.why)
    if given is None:
        found = _("The answer: {answer}.", answer=answer)
        st.info(f"**{found}** {why}")
        return
    outcome, again = asked.outcome(given), asked.question == asked.again
    right = outcome.right
    if st.session_state.get(f"{key}.new"):
        progress.judge(asked.lesson, asked.name, right=right, again=again)
        if not again:
            class_door.note(f"{asked.lesson}/{asked.name}", outcome)
    if right:
        praise = _("Right.")
        st.success(f"**{praise}** {why}")
    else:
        correction, mistake = _("Not quite: {answer}.", answer=answer), plain(asked.mistake(given))
        st.error(f"**{correction}** " + "\n\n".join(part for part in (mistake, why) if part))


def count(key: str) -> None:
    """Has the page count a question that was answered just now."""
    if st.session_state.pop(f"{key}.new", False):
        st.rerun()  # the whole page: its first line counts the answers, and the browser is told


def reveal(lesson: str, name: str, shown: str) -> None:
    """Shows the answer from now on; for callbacks."""
    st.session_state[shown] = True
    st.session_state[f"ask.{lesson}.{name}.new"] = True
    progress.note(lesson, name)


def _reveal_number(lesson: str, name: str, shown: str, typed: str) -> None:
    if st.session_state.get(typed) is None:  # the page says that one is missing; nothing has been answered
        st.session_state[shown] = True
        return
    reveal(lesson, name, shown)
