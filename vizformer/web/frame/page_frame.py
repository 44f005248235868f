"""What every page has around it: the bar, its title and views, notices."""

import ast
import gc
from contextlib import suppress
from copy import copy
from functools import cache
from threading import Lock

import streamlit as st

from vizformer import __version__
from vizformer.assets import app_root, asset
from vizformer.messages import N_
from vizformer.web.catalogue.torch_setup import nothing_is_garbage, prepare_torch
from vizformer.web.frame import bar, class_door, classroom, inline_scripts, presenting
from vizformer.web.frame.bar import NAME
from vizformer.web.frame.first_files import LONGEST_NAME, MISSING
from vizformer.web.frame.sitemap import HOME, HOME_OF_BEFORE, PAGES, Entry
from vizformer.web.inside_streamlit import Page
from vizformer.web.link import state
from vizformer.web.turns import TURNS
from vizformer.web.words.errors import guarded, plain
from vizformer.web.words.i18n import _, language, translate

HOLDS_AT_THE_DOOR = ("model", "text", "target", "lang")  # of a link: what is no sign of another page
_ICON = str(asset("logo.svg"))

_ONE = Lock()


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
        page_icon=_ICON,
        layout="wide",
        menu_items={"Get help": None, "Report a bug": None, "About": f"**{NAME} {__version__}**"},
    )
    inline_scripts.run("language.js", tag=language().replace("_", "-"), skip=_("Skip to the page"))
    bar.draw_bar(entry)
    bar.head(entry)
    guarded()(class_door.banner)(presenting=presenting.is_on())
    notices = st.container(key="notices")
    with guarded(), st.container(key="page-body"):  # (a pointer finds its way from here)
        load()
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


# What pages are made of: imported once, by one thread, before the first page runs.
#
# Two threads that import at once may find each other's modules half made (Python breaks such a deadlock that way):
# one reads `model.trace` on its way to the package `model`, which the other one is importing. Readers who came while
# the server started got an error in place of their page.
def load() -> None:
    """Imports torch and what the pages import at their top; the first call takes seconds, others who come then wait."""
    with _ONE:
        _load()


@cache
def _load() -> None:
    prepare_torch()
    with nothing_is_garbage():
        for entry in PAGES.values():  # the first page first
            page = ast.parse((app_root() / entry.file).read_text(encoding="utf-8"))
            page.body = [node for node in page.body if isinstance(node, ast.Import | ast.ImportFrom)]
            with suppress(Exception):  # that page says so itself, and the others work
                exec(compile(page, entry.file, "exec"), {})
    gc.freeze()  # what is imported stays for good: nobody looks through it again
