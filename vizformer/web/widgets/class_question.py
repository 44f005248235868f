"""A question of a lesson, asked to a whole class: the students send an answer, the teacher sees bars that grow.

The box of a question (`questions`) asks here what it is at the moment:

    part = class_question.part_of("masks", "leak")
    if part == "student": send it, and wait for the teacher to show the answer
    if part == "teacher": the bars, below the question
"""

import html
from collections.abc import Callable, Sequence
from typing import Literal

import streamlit as st

from vizformer.web.frame import class_answers, classroom
from vizformer.web.words.i18n import _, ngettext, show_note

Part = Literal["nobody", "teacher", "student", "shown"]
EVERY = 2.0  # seconds between two looks at the answers
MOST_BARS = 8
_SENT = "class.sent"
_RIGHT = ' class="vf-right"'


def part_of(lesson: str, name: str) -> Part:
    """What this reader has to do with a question now.

    Returns:
        "teacher" of a class, "student" of a class that is asked this question, "shown" where the teacher has shown its
        answer to this student, or "nobody" in a class.
    """
    if classroom.leads() is not None:
        return "teacher"
    place = class_answers.question()
    if place is None or place.question != f"{lesson}/{name}":
        return "nobody"
    return "shown" if place.shown else "student"


def send(lesson: str, name: str, said: str | None, *, key: str) -> None:
    """The student's button: sends the answer `said` (None: there is none yet); it may be sent again."""
    asked = f"{lesson}/{name}"
    done = said is not None and st.session_state.get(_SENT) == (asked, said)
    st.button(
        _("Sent to the class") if done else _("Send my answer to the class"),
        disabled=said is None or done,
        on_click=_send,
        args=(asked, said),
        type="primary",
        key=f"{key}.send",
    )
    _promise()


def send_typed(lesson: str, name: str, typed: str, *, key: str) -> None:
    """Draws the submit button of a form; it sends the number in the widget with the key `typed` to the class."""
    asked = f"{lesson}/{name}"

    def send() -> None:
        if (number := st.session_state.get(typed)) is not None:
            _send(asked, repr(float(number)))

    st.form_submit_button(_("Send my answer to the class"), on_click=send, type="primary", key=f"{key}.send")
    sent = st.session_state.get(_SENT)
    if sent is not None and sent[0] == asked:
        show_note("Sent to the class")
    _promise()


def _promise() -> None:
    show_note("Answers are anonymous. You can change yours until the teacher shows the answer.")


def _send(asked: str, said: str) -> None:
    if class_answers.answer(asked, said):
        st.session_state[_SENT] = (asked, said)


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
    place = class_answers.question()
    if place is None or place.question != asked:
        st.button(
            _("Ask the class"), on_click=class_answers.ask, args=(asked,), type="tertiary", key=f"{key}.class.ask"
        )
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
        st.button(
            _("Ask again from the beginning"), on_click=class_answers.ask, args=(asked,), key=f"{key}.class.again"
        )
        st.button(_("Take the question back"), on_click=class_answers.ask, args=("",), key=f"{key}.class.back")


def _show(show: Callable[[], None]) -> None:
    class_answers.show_answer()
    show()


def _bars(first: Sequence[str], named: Callable[[str], str], right: Callable[[str], bool] | None) -> str:
    """The answers and how often each was given, as a table whose shares are bars; the right ones marked once shown."""
    counts = class_answers.answers()
    total = counts.total()
    others = sorted((one for one in counts if one not in first), key=lambda one: -counts[one])
    rows = [(named(one), counts[one], right is not None and right(one)) for one in (*first, *others[:MOST_BARS])]
    if rest := sum(counts[one] for one in others[MOST_BARS:]):
        rows.append((_("other answers"), rest, False))
    head = ngettext("{n} answer of the class", "{n} answers of the class", total)
    lines = (
        f"<tr{_RIGHT if is_right else ''}><th>{'✓ ' if is_right else ''}{html.escape(name)}</th>"
        f'<td class="vf-number">{count}</td>'
        f'<td class="vf-share"><div style="width:{100 * count / max(total, 1):.1f}%"></div></td></tr>'
        for name, count, is_right in rows
    )
    return f'<table class="vf-facts vf-answers"><caption>{html.escape(head)}</caption>{"".join(lines)}</table>'
