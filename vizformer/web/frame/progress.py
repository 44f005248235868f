"""What a reader has done in the course: kept in the session and in the reader's own browser."""

import time
from collections.abc import Mapping

import streamlit as st

from vizformer.components import memory
from vizformer.web.frame.sitemap import COURSE, Entry, titled
from vizformer.web.words import lesson_words
from vizformer.web.words.i18n import _

# lesson (its address) -> its questions, one or more in each part; what is counted
QUESTIONS: Mapping[str, tuple[str, ...]] = {lesson.url: lesson_words.asked(lesson.url) for lesson in COURSE}
_DONE, _FORGOTTEN, _KEY, _MISSED = "vizformer.done", "vizformer.forgotten", "vizformer.memory", "vizformer.missed"
_STATION = "vizformer.station"
_SETTLED, _SOON, _LATER = 0, 1, 2  # whether a question is asked again: no more, in the next part, the next day


def remember() -> None:
    """Exchanges what is known with the browser; once per run, where it takes no room."""
    with st.container(key="progress"):
        known, missed = memory.mount(_done(), _missed(), forgotten=st.session_state.get(_FORGOTTEN, 0), key=_KEY)
    st.session_state[_DONE] = known & _all()
    st.session_state[_MISSED] = {name: kept for name, kept in missed.items() if name in _all()}


def note(lesson: str, question: str) -> None:
    st.session_state[_DONE] = _done() | {f"{lesson}/{question}"}


def judge(lesson: str, question: str, *, right: bool, again: bool) -> None:
    """A question was answered: one that was missed is asked again in the next part, and after that the next day.

    `again`: whether it was asked in other words, after a wrong answer.
    """
    name, missed = f"{lesson}/{question}", _missed()
    if not right:
        stage = _LATER if again else _SOON
    elif name in missed:
        stage = _LATER if missed[name][1] == _SOON else _SETTLED
    else:
        return
    st.session_state[_MISSED] = {**missed, name: (_now(), stage)}


def due() -> list[tuple[str, str, int]]:
    """The questions that are to be asked again now, as lesson, name and when it was judged, the oldest first."""
    now = _now()
    waiting = sorted((when, name) for name, (when, stage) in _missed().items() if _is_due(stage, now - when))
    return [(lesson, question, when) for when, name in waiting for lesson, question in [name.split("/", 1)]]


def _is_due(stage: int, passed: int) -> bool:
    return stage == _SOON or (stage == _LATER and passed > memory.NEXT_DAY)


def answered(lesson: str) -> int:
    """How many of the lesson's questions have been answered."""
    return sum(name.startswith(f"{lesson}/") for name in _done())


def said(lesson: Entry) -> str:
    """The lesson's number and title; once it was begun, how many of its questions have been answered."""
    of, done = len(QUESTIONS[lesson.url]), answered(lesson.url)
    if not done:
        return titled(lesson)
    return _("{lesson}: {answered} of {of} questions", lesson=titled(lesson), answered=done, of=of)


def stop_at(station: str) -> None:
    """Notes at which station of the path the reader is."""
    st.session_state[_STATION] = station


def station() -> str:
    """The name of the station where the reader left the path in this session; empty where it was not begun."""
    found: str = st.session_state.get(_STATION, "")
    return found


def forget() -> None:
    """Forgets everything, here and in the browser."""
    st.session_state[_DONE], st.session_state[_MISSED] = frozenset(), {}
    st.session_state[_FORGOTTEN] = _now()  # later than any forgetting that the browser knows of


def _done() -> frozenset[str]:
    done: frozenset[str] = st.session_state.get(_DONE, frozenset())
    return done


def _missed() -> memory.Missed:
    missed: memory.Missed = st.session_state.get(_MISSED, {})
    return missed


def _now() -> int:
    """The time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def _all() -> frozenset[str]:
    return frozenset(f"{lesson}/{question}" for lesson, questions in QUESTIONS.items() for question in questions)
