"""The reading list: papers and tutorials, by title and author."""

import streamlit as st

from vizformer.web.widgets import bibliography
from vizformer.web.words.errors import guarded
from vizformer.web.words.i18n import _, language, show_markdown


@guarded()
def page() -> None:
    show_markdown(
        "Read the first paper with the lessons open beside it. Nothing here is needed to use the app, and no link is "
        "followed by itself: the class may be offline."
    )
    titles = {"paper": _("Papers"), "tutorial": _("Tutorials and courses")}
    for kind, title in titles.items():
        st.subheader(title, anchor=False)
        bibliography.table([item for item in bibliography.items(language()) if item.kind == kind])
    bibliography.beyond()


page()
