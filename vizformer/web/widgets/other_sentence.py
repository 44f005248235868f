"""A box for one more sentence, which the link carries."""

from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from vizformer.web.link import state
from vizformer.web.widgets import source_language

EMPTIED = " "  # of the view: nothing stands for the sentence that the page proposes


def ask_other_sentence(label: str, field: str, default: str, basis: str, on: DeltaGenerator | None = None) -> str:
    """Asks for a sentence beside that of the page.

    With another `basis` the box begins anew, as with another sentence of the page.
    """
    known = f"other.{field}.basis"
    before, st.session_state[known] = st.session_state.get(known), basis
    if before not in (None, basis):
        state.update(**{field: ""})
    now, key = getattr(state.view(), field) or default, f"view.{field}"
    state.show(key, now)
    kept: dict[str, Any] = {"key": key, "on_change": _take, "args": (field, key, default), "persist_state": "session"}
    text: str = (on or st).text_input(source_language.with_meaning(label, now), **kept)
    return text.strip()


def _take(field: str, key: str, default: str) -> None:
    typed = st.session_state[key]
    if isinstance(typed, str):
        state.update(**{field: "" if typed.strip() == default.strip() else typed or EMPTIED})
