"""Tiles: a page each, with a picture, its title and a sentence."""

import streamlit as st

from vizformer.web.frame import progress
from vizformer.web.frame.sitemap import COURSE, DOORS, LEARN, Entry
from vizformer.web.words.errors import guarded
from vizformer.web.words.i18n import translate


@guarded()
def door(entry: Entry) -> None:
    """The tiles of the pages behind a door."""
    if entry is LEARN:
        progress.remember()
    with st.container(horizontal=True, key="tiles"):
        for page in DOORS[entry]:
            tile(page)


def tile(entry: Entry) -> None:
    """The tile of a page; that of a lesson says what was done of it."""
    with st.container(key=f"tile-{entry.url}", border=True, gap="xsmall"):
        st.page_link(entry.file, label=progress.said(entry) if entry in COURSE else translate(entry.title))
        st.caption(translate(entry.summary))
