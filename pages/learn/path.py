"""The path: from a sentence to a prediction in twelve pictures, each predicted before it is seen; below it, the lessons."""

import streamlit as st

from vizformer.web.frame import presenting, progress, sitemap
from vizformer.web.pages.path.stations import draw_path
from vizformer.web.widgets import tiles
from vizformer.web.widgets.model_input import subject_box
from vizformer.web.words.i18n import _


def page() -> None:
    progress.remember()
    subject = subject_box()
    if subject is not None:
        draw_path(subject)
    if not presenting.is_on():
        st.subheader(_("Lessons"), anchor=False)
        tiles.behind(sitemap.PATH)


page()
