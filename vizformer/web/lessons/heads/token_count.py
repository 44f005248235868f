"""How many tokens the costs are counted for: the sentence's own, or more."""

import streamlit as st

from vizformer.web.widgets import lesson
from vizformer.web.words.i18n import _

LENGTHS = (0, 128, 512, 2048, 8192, 32768)  # tokens; 0: as many as the sentence has


def asked_length(name: str, own: int) -> int:
    """Asks for a number of tokens: the sentence's `own`, or a larger one."""
    chosen: int = st.select_slider(
        _("Tokens"),
        LENGTHS,
        **lesson.setting(name, 0, LENGTHS),
        format_func=lambda n: f"{n:,}" if n else _("{n} (your sentence)", n=own),
    )
    return chosen or own


def tex_number(value: int) -> str:
    return f"{value:,}".replace(",", r"\,")
