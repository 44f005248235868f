"""What every page has around it: the bar, its title and views, notices."""

from copy import copy
from functools import cache

import streamlit as st

from vizformer import __version__
from vizformer.assets import asset
from vizformer.messages import N_
from vizformer.web.frame import bar, class_door, classroom, inline_scripts, page_modules, presenting
from vizformer.web.frame.bar import NAME
from vizformer.web.frame.first_files import LONGEST_NAME, MISSING
from vizformer.web.frame.sitemap import HOME, HOME_OF_BEFORE, PAGES, Entry
from vizformer.web.inside_streamlit import Page
from vizformer.web.link import state
from vizformer.web.turns import TURNS
from vizformer.web.words.errors import guarded, plain
from vizformer.web.words.i18n import _, language, translate

HOLDS_AT_THE_DOOR = ("model", "text", "target", "lang")  # of a link: what is no sign of another page


def run() -> None:
    """Draws the frame and the page that the address asks for."""
    with TURNS.turn():
        _run()


def _run() -> None:
    page = _navigate()
    before = language()
    classroom.arrive()
    entry = _entry(page)
    if state.pull(page.url_path, entry.holds) and not page.url_path and state.holds_more(HOLDS_AT_THE_DOOR):
        # A link from when the door was another page. (With its parameters: that page reads them, and says what is wrong.)
        st.switch_page(HOME_OF_BEFORE.file, query_params=st.query_params.to_dict())
    if missing := st.query_params.get(MISSING):
        state.note(
            N_(
                "There is no page {name}. This is the nearest one; the search in the bar finds every page, part and term.",
                name=missing[:LONGEST_NAME],
            )
        )
    classroom.keep_up(page.url_path)
    if language() != before:  # the link asks for a language: the titles again, in that language
        page = _navigate()
    title = translate(entry.title)
    st.set_page_config(
        page_title=f"{title} · {NAME}",
        page_icon=str(asset("logo.svg")),
        layout="wide",
        menu_items={"Get help": None, "Report a bug": None, "About": f"**{NAME} {__version__}**"},
    )
    inline_scripts.run("language.js", tag=language().replace("_", "-"), skip=_("Skip to the page"))
    bar.draw(entry)
    bar.head(entry)
    guarded()(class_door.banner)(presenting=presenting.is_on())
    notices = st.container()
    with guarded(), st.container(key="page-body"):  # (a pointer finds its way from here)
        page_modules.load()
        page.run()
    for message in state.notices():  # drawn last, shown first: the page may have corrected the view
        notices.info(translate(message, plain))
    state.push()
    state.drawn()


def _navigate() -> Page:
    return st.navigation([copy(page) for page in _pages(language())], position="hidden")


@cache
def _pages(_language: str) -> list[Page]:
    """The pages, with titles in the language that holds.

    Made once: each looks for its file on the disk, which is a tenth of what a run of a page costs.  A run takes copies,
    since Streamlit marks the one that it draws.
    """
    pages = [
        st.Page(e.file, title=translate(e.title), url_path="home" if e is HOME else e.url, default=e is HOME)
        for e in PAGES.values()
    ]
    # Streamlit serves the default page at "/" only; in a link, its own address has to work all the same.
    return [*pages, st.Page(HOME.file, title=translate(HOME.title), url_path=HOME.url, visibility="hidden")]


def _entry(page: Page) -> Entry:
    return PAGES.get(page.url_path, HOME)
