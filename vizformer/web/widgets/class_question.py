"""A question of a lesson, asked to a whole class: the students send an answer, the teacher sees bars that grow.

The box of a question (`questions`) asks here what it is at the moment:

    part = class_question.part_of("masks", "leak")
    if part == "student": send it, and wait for the teacher to show the answer
    if part == "teacher": the bars, below the question
"""

import html
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, NamedTuple

import streamlit as st

from vizformer.web.frame import class_door, classroom
from vizformer.web.frame.class_door import Outcome
from vizformer.web.words.i18n import _, ngettext, show_note

Part = Literal["nobody", "teacher", "student", "shown"]
EVERY = 2.0  # seconds between two looks at the answers
MOST_BARS = 8
_SENT = "class.sent"
_STRONG = ' class="vf-right"'


def part_of(lesson: str, name: str) -> Part:
    """What this reader has to do with a question now.

    Returns:
        "teacher" of a class, "student" of a class that is asked this question, "shown" where the teacher has shown its
        answer to this student, or "nobody" in a class.
    """
    if classroom.leads() is not None:
        return "teacher"
    place = class_door.asked_question()
    if place is None or place.question != f"{lesson}/{name}":
        return "nobody"
    return "shown" if place.shown else "student"


def send(lesson: str, name: str, said: str | None, *, key: str, outcome: Outcome | None) -> None:
    """The student's button: sends the answer `said` (None: there is none yet); it may be sent again, and counts once."""
    asked = f"{lesson}/{name}"
    done = said is not None and st.session_state.get(_SENT) == (asked, said)
    st.button(
        _("Sent to the class") if done else _("Send my answer to the class"),
        disabled=said is None or done,
        on_click=_send,
        args=(asked, said, outcome),
        type="primary",
        key=f"{key}.send",
    )
    _promise()


def send_typed(lesson: str, name: str, typed: str, *, key: str, outcome: Callable[[float], Outcome]) -> None:
    """Draws the submit button of a form; it sends the number in the widget with the key `typed` to the class."""
    asked = f"{lesson}/{name}"

    def send() -> None:
        if (number := st.session_state.get(typed)) is not None:
            _send(asked, repr(float(number)), outcome(number))

    st.form_submit_button(_("Send my answer to the class"), on_click=send, type="primary", key=f"{key}.send")
    sent = st.session_state.get(_SENT)
    if sent is not None and sent[0] == asked:
        show_note("Sent to the class")
    _promise()


def _promise() -> None:
    show_note("Answers are anonymous. You can change yours until the teacher shows the answer.")


def _send(asked: str, said: str, outcome: Outcome) -> None:
    if class_door.answer(asked, said):
        st.session_state[_SENT] = (asked, said)
        class_door.note(asked, outcome)


def lead(
    lesson: str,
    name: str,
    *,
    key: str,
    bars: Sequence[str],
    named: Callable[[str], str],
    right: Callable[[str], bool],
    show: Callable[[], None],
) -> None:
    """The teacher's side of a question. Answers in `bars` have a bar also where nobody gave them; `right` says which are."""
    asked = f"{lesson}/{name}"
    place = class_door.asked_question()
    if place is None or place.question != asked:
        st.button(_("Ask the class"), on_click=class_door.ask, args=(asked,), type="tertiary", key=f"{key}.class.ask")
        return

    @st.fragment(run_every=None if place.shown else EVERY)
    def counted() -> None:
        st.html(_bars(bars, named, right if place.shown else None))

    counted()
    with st.container(horizontal=True):
        if not place.shown:
            st.button(
                _("Show the class the answer"), on_click=_show, args=(show,), type="primary", key=f"{key}.class.show"
            )
        st.button(_("Ask again from the beginning"), on_click=class_door.ask, args=(asked,), key=f"{key}.class.again")
        st.button(_("Take the question back"), on_click=class_door.ask, args=("",), key=f"{key}.class.back")


def _show(show: Callable[[], None]) -> None:
    class_door.show_answer()
    show()


def _bars(first: Sequence[str], named: Callable[[str], str], right: Callable[[str], bool] | None) -> str:
    """The answers and how often each was given, as a table whose shares are bars; the right ones marked once shown."""
    counts = class_door.answers()
    total = counts.total()
    others = sorted((one for one in counts if one not in first), key=lambda one: -counts[one])
    rows = []
    for one in (*first, *others[:MOST_BARS]):
        is_right = right is not None and right(one)
        rows.append(Row("✓ " * is_right + named(one), str(counts[one]), counts[one] / max(total, 1), is_right))
    if rest := sum(counts[one] for one in others[MOST_BARS:]):
        rows.append(Row(_("other answers"), str(rest), rest / total))
    return table(ngettext("{n} answer of the class", "{n} answers of the class", total), rows)


class Row(NamedTuple):
    """What is counted, its number, its share as a bar (None: no bar), whether it stands out, what stands below its name."""

    name: str
    number: str
    share: float | None = None
    is_strong: bool = False
    remark: str = ""


def table(head: str, rows: Iterable[Row]) -> str:
    """A table whose shares are bars."""
    lines = (
        f"<tr{_STRONG if row.is_strong else ''}><th>{html.escape(row.name)}{_remark(row)}</th>"
        f'<td class="vf-number">{html.escape(row.number)}</td>'
        f'<td class="vf-share">{_bar(row)}</td></tr>'
        for row in rows
    )
    return f'<table class="vf-facts vf-answers"><caption>{html.escape(head)}</caption>{"".join(lines)}</table>'


def _bar(row: Row) -> str:
    return "" if row.share is None else f'<div style="width:{100 * row.share:.1f}%"></div>'


def _remark(row: Row) -> str:
    return f"<br><small>{html.escape(row.remark)}</small>" if row.remark else ""
