"""What a reader has done in the course: kept in the session and in the reader's own browser."""

import time
from collections.abc import Mapping

import streamlit as st

from vizformer.components import memory
from vizformer.web.frame.numbering import titled
from vizformer.web.frame.sitemap import COURSE, Entry
from vizformer.web.words import lesson_words
from vizformer.web.words.i18n import _

# lesson (its address) -> its questions, one or more in each part; what is counted
QUESTIONS: Mapping[str, tuple[str, ...]] = {lesson.url: lesson_words.asked(lesson.url) for lesson in COURSE}
_DONE, _FORGOTTEN, _KEY = "vizformer.done", "vizformer.forgotten", "vizformer.memory"


def remember() -> None:
    """Exchanges what is known with the browser; once per run, where it takes no room."""
    with st.container(key="progress"):
        known = memory.mount(_done(), forgotten=st.session_state.get(_FORGOTTEN, 0), key=_KEY)
    st.session_state[_DONE] = known & _all()


def note(lesson: str, question: str) -> None:
    """A question has been answered."""
    st.session_state[_DONE] = _done() | {f"{lesson}/{question}"}


def answered(lesson: str) -> int:
    """How many of the lesson's questions have been answered."""
    return sum(name.startswith(f"{lesson}/") for name in _done())


def said(lesson: Entry) -> str:
    """The lesson's number and title; once it was begun, how many of its questions have been answered."""
    of, done = len(QUESTIONS[lesson.url]), answered(lesson.url)
    if not done:
        return titled(lesson)
    return _("{lesson}: {answered} of {of} questions", lesson=titled(lesson), answered=done, of=of)


def forget() -> None:
    """Forgets everything, here and in the browser."""
    st.session_state[_DONE] = frozenset()
    st.session_state[_FORGOTTEN] = time.time_ns() // 1_000_000  # later than any forgetting that the browser knows of


def _done() -> frozenset[str]:
    done: frozenset[str] = st.session_state.get(_DONE, frozenset())
    return done


def _all() -> frozenset[str]:
    return frozenset(f"{lesson}/{question}" for lesson, questions in QUESTIONS.items() for question in questions)
