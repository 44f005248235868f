"""A page at a projector: large letters, nothing around it, and keys that step through a lesson.

The view says which slide is shown (`View.slide`); a lesson has two for each of its parts, its words and its laboratory.
The keys press the buttons that are drawn here and in `widgets.slides`: assets/present.js.
"""

import streamlit as st

from vizformer.assets import asset
from vizformer.web.frame import inline_scripts
from vizformer.web.link import state
from vizformer.web.words.i18n import _


def is_on() -> bool:
    """Whether the page is presented."""
    return state.view().slide != "off"


def button() -> None:
    """The button that begins a presentation of the page."""
    st.button(
        _("Present"),
        on_click=begin,
        key="present-begin",
        help=_(
            "Large letters and nothing around the page. Arrow keys or a clicker step through a lesson; Esc ends it."
        ),
    )


def head() -> None:
    """What stands beside the title while it is presented: the way out."""
    st.html(f"<style>{asset('present.css').read_text(encoding='utf-8')}</style>")
    inline_scripts.run("present.js")
    st.button(_("End the presentation"), on_click=end, key="present-end", type="tertiary")


def begin() -> None:
    """Presents the page from now on; for callbacks."""
    state.update(slide="words")


def end() -> None:
    """Shows the page as it is again; for callbacks."""
    state.update(slide="off")
