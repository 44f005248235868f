"""What every page has around it: navigation, language switch, title, notices.

app.py calls `run` for every run of every visitor. The pages are listed in `sitemap`.
"""

from copy import copy
from functools import cache

import streamlit as st
from streamlit.navigation.page import Page

from vizformer import __version__
from vizformer.assets import asset
from vizformer.web.frame import class_door, classroom, inline_scripts, presenting, share
from vizformer.web.frame.sitemap import HOME, HOME_OF_BEFORE, SECTIONS, Entry
from vizformer.web.link import state
from vizformer.web.link.languages import LANGUAGES
from vizformer.web.turns import TURNS
from vizformer.web.words.errors import guarded, plain
from vizformer.web.words.i18n import _, language, translate

NAME = "VizFormer"
HOLDS_AT_THE_DOOR = ("model", "text", "target", "lang")  # of a link: what is no sign of another page
_LANGUAGE_KEY = "vizformer.language"


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
    st.logo(str(asset("wordmark.svg")), size="large", icon_image=str(asset("logo.svg")))
    inline_scripts.run("language.js", tag=language().replace("_", "-"))
    for script in ("history.js", "accessible.js"):
        inline_scripts.run(script)
    st.html(f"<style>{asset('app.css').read_text(encoding='utf-8')}</style>")
    _sidebar()
    with st.container(horizontal=True, vertical_alignment="center", key="page-head"):
        st.title(title, anchor=False)
        if presenting.is_on():
            guarded()(class_door.leading)()
            presenting.head()
        else:
            presenting.button()
            guarded()(class_door.button)()
            guarded()(share.button)()
    if not presenting.is_on():
        st.caption(translate(entry.summary))
    guarded()(class_door.banner)(presenting=presenting.is_on())
    notices = st.container()
    with guarded(), st.container(key="page-body"):  # (a pointer finds its way from here)
        page.run()
    for message in state.notices():  # drawn last, shown first: the page may have corrected the view
        notices.info(translate(message, plain))
    state.push()
    state.drawn()


def _navigate() -> Page:
    return st.navigation(
        {section: [copy(page) for page in pages] for section, pages in _pages(language()).items()}, expanded=True
    )


@cache
def _pages(_language: str) -> dict[str, list[Page]]:
    """The pages of each section, with titles in the language that holds.

    Made once: each looks for its file on the disk, which is a tenth of what a run of a page costs.  A run takes copies,
    since Streamlit marks the one that it draws.
    """
    pages = {
        "" if section is None else translate(section): [
            st.Page(
                e.file,
                title=translate(e.title),
                url_path="home" if e is HOME else e.url,
                default=e is HOME,
            )
            for e in entries
        ]
        for section, entries in SECTIONS
    }
    # Streamlit serves the default page at "/" only; in a link, its own address has to work all the same.
    alias = st.Page(HOME.file, title=translate(HOME.title), url_path=HOME.url, visibility="hidden")
    next(iter(pages.values())).append(alias)
    return pages


def _entry(page: Page) -> Entry:
    return next((e for __, entries in SECTIONS for e in entries if e.url == page.url_path), HOME)


def _sidebar() -> None:
    with st.sidebar:
        if st.session_state.get(_LANGUAGE_KEY) != language():
            st.session_state[_LANGUAGE_KEY] = language()
        st.segmented_control(
            _("Language"),
            list(LANGUAGES),
            format_func=LANGUAGES.__getitem__,
            required=True,
            key=_LANGUAGE_KEY,
            on_change=_change_language,
        )
        st.caption(_("{name} {version}. What you type stays on this server.", name=NAME, version=__version__))


def _change_language() -> None:
    if (chosen := st.session_state[_LANGUAGE_KEY]) in LANGUAGES:  # a run that was cut short knows none
        state.update(lang=chosen)
