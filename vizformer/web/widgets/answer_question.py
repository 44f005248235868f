"""Beside an answer of the model: why this one? It leads to the page that takes its logit apart."""

from typing import Any

import streamlit as st

from vizformer.web.frame import presses, sitemap
from vizformer.web.link import state
from vizformer.web.words.errors import plain
from vizformer.web.words.i18n import _


def ask_why(token: str, position: int, *, key: str, **also: Any) -> None:
    """The button; `also` is what else that page looks at, as fields of the view."""
    if presses.button(_("Why “{token}”?", token=plain(token)), type="tertiary", key=key):
        state.update(position=position, **also)
        st.switch_page(sitemap.LENS.file)
