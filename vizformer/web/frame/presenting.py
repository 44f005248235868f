"""A page at a projector: large letters, nothing around it, and keys that step through a lesson.

The view says that the part of a lesson is shown as a slide (`View.slide`), or the notes to it, in a window that follows the
first one; which slide a link of before names of that part does not matter.
The keys press the buttons that are drawn here and in `widgets.slides`: assets/present.js.
"""

import streamlit as st

from vizformer.assets import asset
from vizformer.web.frame import inline_scripts
from vizformer.web.link import state
from vizformer.web.link.view import NOTES, PAPER
from vizformer.web.words.i18n import _

_FIRST = "words"


def is_on() -> bool:
    return state.view().slide not in ("off", PAPER)


def is_printed() -> bool:
    """Whether all parts of a lesson stand one below the other, to be printed."""
    return state.view().slide == PAPER


def is_notes() -> bool:
    """Whether the speaker's notes are shown instead of the slide."""
    return state.view().slide.startswith(NOTES)


def button() -> None:
    st.button(
        _("Present"),
        on_click=begin,
        key="present-begin",
        help=_(
            "Large letters and nothing around the page. Arrow keys or a clicker step through a lesson, S opens "
            "its notes in a separate window; Esc ends it."
        ),
    )


def head() -> None:
    """Draws the buttons beside the title of a presentation: the notes, and the way out."""
    st.html(f"<style>{asset('present.css').read_text(encoding='utf-8')}</style>")
    inline_scripts.run("present.js")
    if not is_notes():
        st.button(_("Notes"), key="present-notes", type="tertiary")  # (the browser opens the window)
        st.button(_("End"), on_click=end, key="present-end", type="tertiary", help=_("End the presentation"))


def begin() -> None:
    """Presents the page from its first slide on; for callbacks."""
    state.update(slide=_FIRST)


def go(part: str) -> None:
    """Goes to the slide of a part; for callbacks."""
    state.update(part=part)


def print_out() -> None:
    """Shows all parts of a lesson one below the other, to be printed; for callbacks."""
    state.update(slide=PAPER)


def end() -> None:
    state.update(slide="off")
