"""Ways from a laboratory to the pages that go on with its subject."""

import streamlit as st

from vizformer.web.frame.sitemap import Entry
from vizformer.web.words.i18n import _, translate


def to(*entries: Entry) -> None:
    """Draws a link for each page."""
    with st.container(horizontal=True):
        for entry in entries:
            st.page_link(entry.file, label=_("See also: {page} →", page=translate(entry.title)))
