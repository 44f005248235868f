"""One line of doors below the picture: on to the path, to attention, to a class, to a model of the reader's own."""

import streamlit as st

from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import sitemap
from vizformer.web.widgets.whole_model.picture import draw_away
from vizformer.web.words.errors import guarded
from vizformer.web.words.i18n import _, translate


@guarded()
def draw_doors(subject: Subject | None) -> None:
    with st.container(horizontal=True, key="start-doors", gap="medium"):
        for entry, label in (
            (sitemap.PATH, translate(sitemap.PATH.title)),
            (sitemap.ATTENTION, translate(sitemap.ATTENTION.title)),
            (sitemap.TEACH, _("In class")),
            (sitemap.OPEN, translate(sitemap.OPEN.title)),
        ):
            st.page_link(entry.file, label=f"{label} →")
        if subject is not None and subject.checkpoint.is_own:
            draw_away(subject)
