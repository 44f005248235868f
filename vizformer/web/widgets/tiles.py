"""Tiles: a page each, with a picture (assets/tiles.svg), its title and a sentence."""

import re
from functools import cache
from urllib.parse import quote

import streamlit as st

from vizformer.assets import asset
from vizformer.web.frame import classroom, presenting, presses, progress
from vizformer.web.frame.sitemap import COURSE, DOORS, TEACH, Entry
from vizformer.web.widgets import model_input
from vizformer.web.words.errors import guarded
from vizformer.web.words.i18n import _, show_note, translate


@guarded()
def door(entry: Entry) -> None:
    """A door that is nothing but the tiles of the pages behind it."""
    model_input.boxes()
    behind(entry)


@guarded()
def behind(entry: Entry) -> None:
    """The tiles of the pages behind a door; of a lesson that was begun, how many of its questions are answered."""
    with st.container(horizontal=True, key="tiles"):
        if entry is TEACH:
            _lead()
            _present()
        for page in DOORS[entry]:
            with st.container(key=f"tile-{page.url}", border=True, gap="xsmall"):
                _picture(page.url)
                st.page_link(page.file, label=progress.said(page) if page in COURSE else translate(page.title))
                st.caption(translate(page.summary))


def _lead() -> None:
    with st.container(key="tile-class", border=True, gap="xsmall"):
        _picture("class")
        if presses.button(
            _("Start a class"), key="teach.class", type="tertiary", disabled=classroom.leads() is not None
        ):
            if (refused := classroom.start()) is None:
                st.rerun()  # its code stands above the page
            st.warning(translate(refused))
        show_note("As a teacher: students see each of your steps.")


def _present() -> None:
    with st.container(key="tile-present", border=True, gap="xsmall"):
        _picture("present")
        if presses.button(_("Present the course"), key="teach.present", type="tertiary"):
            presenting.begin()
            st.switch_page(COURSE[0].file)
        show_note("The lessons as slides for a projector.")


def _picture(name: str) -> None:
    st.html(f'<img class="vf-tile" alt="" src="data:image/svg+xml,{pictures()[name]}">')


@cache
def pictures() -> dict[str, str]:
    """The small pictures by the addresses of their pages; their colours are read on a light and on a dark ground."""
    text = asset("tiles.svg").read_text(encoding="utf-8")
    begin = text[: text.index("<g ")]
    return {name: quote(f"{begin}{lines}</svg>") for name, lines in re.findall(r'<g id="(\w+)">(.*?)</g>', text)}
