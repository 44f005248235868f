"""Questions of the lessons: predict first, then the answer is shown.

ask("masks", "leak", question, choices, answer, why)
ask_number("block", "count", question, 18_914_304, why)
ask_number("block", "length", question, 15.9, why, tolerance=0.1)
"""

from collections.abc import Callable, Sequence

import streamlit as st

from vizformer.web.frame import progress
from vizformer.web.words.errors import plain
from vizformer.web.words.i18n import _


def ask(
    lesson: str,
    name: str,
    question: str,
    choices: Sequence[str],
    answer: int,
    why: str,
    about: str = "",
    *,
    code: bool = False,
) -> None:
    """A question to be answered before the answer is shown.

    Args:
        lesson, name: as listed in `progress.QUESTIONS`.
        question, choices, why: in the reader's language; plain text (what was typed may be in it).
        answer: index of the right choice.
        about: what the question is about (the text, a setting): when it changes, the question is open again.
        code: whether the choices are the lines of a program, with spaces before them: set as code and counted from 1.
    """
    key, shown = keys(lesson, name, about)
    with st.container(border=True, key=key):
        predict(question)
        picked = st.radio(
            _("Your answer"),
            range(len(choices)),
            index=None,
            format_func=lambda i: _line(i, choices[i]) if code else plain(choices[i]),
            label_visibility="collapsed",
            key=f"{key}.choice.{about}",
        )
        if not st.session_state.get(shown):
            st.button(
                _("Show the answer"),
                disabled=picked is None,
                on_click=reveal,
                args=(lesson, name, shown),
                key=f"{key}.button.{about}",
            )
            return
        verdict(picked == answer, _("line {n}", n=answer + 1) if code else choices[answer], why)
    count(key)


def is_answered(lesson: str, name: str, about: str = "") -> bool:
    """Whether the answer to a question is shown."""
    return bool(st.session_state.get(keys(lesson, name, about)[1]))


def _line(index: int, line: str) -> str:
    """A line of a program (without backticks) as Markdown that keeps the spaces before it."""
    return "`" + f"{index + 1:>2}  {line}".replace(" ", "\u00a0") + "`"


def ask_number(
    lesson: str,
    name: str,
    question: str,
    answer: float,
    why: str,
    *,
    tolerance: float = 0.0,
    written: Callable[[float], str] = "{:,g}".format,
    about: str = "",
) -> None:
    """A question whose answer is a number that the reader enters; it is right within a tolerance that stands beside it.

    Args:
        lesson, name, question, why, about: as in `ask`.
        answer: the number, in the unit that the question names.
        tolerance: how far from it an answer still counts as right; 0: only the number itself, which is whole then.
        written: the answer as a text.
    """
    key, shown = keys(lesson, name, about)
    typed, done = f"{key}.number.{about}", bool(st.session_state.get(shown))
    with st.container(border=True, key=key):
        predict(question)
        with st.form(f"{key}.form.{about}", border=False):  # one click both takes the number and shows the answer
            given = st.number_input(
                _("Your number (right within ± {tolerance})", tolerance=f"{tolerance:g}")
                if tolerance
                else _("Your number (exact)"),
                value=None,
                step=None if tolerance else 1,
                format=None if not tolerance else "%g",
                key=typed,
            )
            st.form_submit_button(
                _("Show the answer"),
                on_click=_reveal_number,
                args=(lesson, name, shown, typed),
                key=f"{key}.button.{about}",
            )
        if not done:
            return
        if given is None:
            st.caption(_("Enter a number first."))
            return
        verdict(abs(given - answer) <= tolerance, written(answer), why)
    count(key)


def keys(lesson: str, name: str, about: str) -> tuple[str, str]:
    """The question's own key, and that of whether its answer is shown."""
    key = f"ask.{lesson}.{name}"
    return key, f"{key}.shown.{about}"


def predict(text: str) -> None:
    """The question, to be answered before the answer is shown."""
    predict = _("Predict first.")  # the extractor does not look into f-strings
    st.markdown(f"**{predict}** {plain(text)}")


def verdict(right: bool, answer: str, why: str) -> None:
    """Whether it was right, and why."""
    if right:
        praise = _("Right.")
        st.success(f"**{praise}** {plain(why)}")
    else:
        correction = _("Not quite: {answer}.", answer=plain(answer))
        st.error(f"**{correction}** {plain(why)}")


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
