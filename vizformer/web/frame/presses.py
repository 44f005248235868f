"""Buttons whose presses a page handles where it draws them: `if presses.button(...)`.

Streamlit tells a press to one run, and forgets it where another one (a second click, a part that is drawn anew) comes before
the run has reached the button; beside other readers a run may wait for seconds.  So a press is noted before its run begins,
and the next run that draws the button takes it.
"""

import time
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

SECONDS = 60.0  # a press that no run has taken by then (the reader went to another page) counts no more
_NOTED = "presses.noted"


def button(label: str, *, key: str, at: DeltaGenerator | None = None, **options: Any) -> bool:
    """`st.button`, or that of the container `at`; whether it was pressed."""
    (at or st).button(label, key=key, on_click=_note, args=(key,), **options)
    return _taken(key)


def submit(label: str, *, key: str, **options: Any) -> bool:
    """Draws `st.form_submit_button`; returns whether it was pressed."""
    st.form_submit_button(label, key=key, on_click=_note, args=(key,), **options)
    return _taken(key)


def _note(name: str) -> None:
    st.session_state.setdefault(_NOTED, {})[name] = time.monotonic()


def _taken(name: str) -> bool:
    noted: float | None = st.session_state.get(_NOTED, {}).pop(name, None)
    return noted is not None and time.monotonic() - noted < SECONDS
