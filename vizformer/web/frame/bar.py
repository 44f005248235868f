"""The bar at the top of every page: the doors, what the page shows (its boxes), and what can be done with every page.

On a narrow screen it is one line, with the sentence and the sign that unfolds the rest: assets/app.css.
"""

from collections.abc import Iterator
from contextvars import ContextVar
from functools import cache
from itertools import accumulate
from unicodedata import east_asian_width

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from vizformer.messages import Message
from vizformer.web.frame import class_door, presenting, progress
from vizformer.web.frame.sitemap import (
    COURSE,
    DOORS,
    GLOSSARY,
    HELP,
    HOME,
    LISTED,
    NOTATION_LIST,
    NOTATIONS,
    PAGES,
    READING,
    READING_LIST,
    Entry,
    beside,
    door_of,
)
from vizformer.web.link import link_settings, state
from vizformer.web.link.languages import LANGUAGES, SOURCE, catalogue
from vizformer.web.words import lesson_words
from vizformer.web.words.errors import guarded, plain
from vizformer.web.words.i18n import _, language, show_note, translate
from vizformer.web.words.lesson_words import say
from vizformer.web.words.terms import read_terms

# Search: a box that finds every page, part of a lesson and term of the glossary by its name in any language.

WANTED = "glossary.search"  # the box of the glossary
_KEY, _CHOSEN = "search", "search.chosen"
Goal = tuple[Entry, str, str]  # a page, a part of it, and what its own search is to find


def box() -> None:
    """The box; what is chosen in it is gone to."""
    if state.arrives(_KEY):
        st.session_state[_KEY] = None
    goals = index(language())
    st.selectbox(
        _("Search"),
        list(goals),
        index=None,
        placeholder=_("Search"),
        label_visibility="collapsed",
        filter_mode="contains",
        key=_KEY,
        on_change=_choose,
    )
    if (goal := goals.get(st.session_state.pop(_CHOSEN, None) or "")) is not None:
        entry, part, wanted = goal
        if entry is GLOSSARY:
            state.update(settings=link_settings.changed(state.view().settings, LISTED, part or None))
        elif part:
            state.update(part=part)
        if wanted:
            st.session_state[WANTED] = wanted
        st.switch_page(entry.file)


def _choose() -> None:
    st.session_state[_CHOSEN], st.session_state[_KEY] = st.session_state[_KEY], None


@cache
def index(code: str) -> dict[str, Goal]:
    """The goals of the search by their names, those in the language `code` first."""
    codes = sorted(LANGUAGES, key=lambda one: one != code)
    found: dict[str, Goal] = {}
    for entry in PAGES.values():
        found[_names([_in(one, entry.title) for one in codes])] = entry, "", ""
    for lesson in COURSE:
        where = _in(code, lesson.title)
        for part, titles in _parts(lesson):
            found[f"{_names([titles[one] for one in codes])} ({where})"] = lesson, part, ""
    where = _in(code, GLOSSARY.title)
    for title, part in ((READING_LIST, READING), (NOTATION_LIST, NOTATIONS)):
        found[f"{_names([_in(one, title) for one in codes])} ({where})"] = GLOSSARY, part, ""
    lessons = {lesson.url: lesson for lesson in COURSE}
    for key, term in read_terms(code).items():
        names = _names([*(read_terms(one)[key].name for one in codes), *term.also])
        if term.part:  # where it is seen comes before what it means
            lesson = lessons[term.lessons[0]]
            found[f"{names} ({_in(code, lesson.title)})"] = lesson, term.part, ""
        found[f"{names} ({where})"] = GLOSSARY, "", term.name
    return found


def _names(names: list[str]) -> str:
    return " · ".join(dict.fromkeys(names))


def _in(code: str, message: Message) -> str:
    return catalogue(code).get(message.text, message.text)


def _parts(lesson: Entry) -> Iterator[tuple[str, dict[str, str]]]:
    """The parts of a lesson with their titles by language."""
    for part, words in lesson_words.parts(lesson.url, SOURCE).items():
        yield part, {code: lesson_words.parts(lesson.url, code).get(part, words)["title"] for code in LANGUAGES}


NAME = "VizFormer"
SHOWN_ON_A_PHONE = 24  # widths of the sentence's characters: a Chinese one is as wide as two letters
_OPEN, _READ = "bar.open", "_sentence of the bar"
_BOXES: ContextVar[DeltaGenerator | None] = ContextVar("boxes of the bar", default=None)
_HEADING: ContextVar[DeltaGenerator | None] = ContextVar("heading of the first page", default=None)


def draw_bar(entry: Entry) -> None:
    """Draws the bar of a page; its boxes stay empty until the page fills them.  Of a page that is presented they are all."""
    if presenting.is_on():
        with st.container(horizontal=True, key="bar", wrap=False):
            _fold()
            _boxes()
        return
    here = door_of(entry)
    with st.container(horizontal=True, key="bar", wrap=False):
        with st.container(key="bar-home", width="content"):
            st.page_link(HOME.file, label=NAME)
        _fold()
        with st.container(horizontal=True, key="bar-doors", width="content", gap=None):
            for door in DOORS:
                st.page_link(door.file, label=_here(translate(door.door), is_here=door is here))
        _boxes()
        with st.container(key="bar-search"):
            guarded()(box)()
        with st.container(horizontal=True, key="bar-tools", width="content", gap=None):
            _language()
            presenting.button()
            guarded()(class_door.button)()
            guarded()(class_door.share_button)()
            with st.popover("?", key="help", help=_("Glossary and reading list")):
                for page in HELP:
                    st.page_link(page.file, label=_("Glossary and reading list"))
                show_note("What you type stays on this server.")


def _boxes() -> None:
    _BOXES.set(st.container(horizontal=True, key="bar-boxes", gap=None, wrap=False))


def boxes() -> DeltaGenerator:
    """The place in the bar for what the page asks of its reader: sentence, target, model."""
    return _BOXES.get() or st.container(horizontal=True)  # (a page without a frame has none)


def head(entry: Entry) -> None:
    """The line below the bar: the title of the page, and the pages beside it."""
    with st.container(horizontal=True, vertical_alignment="center", key="page-head", wrap=False):
        if entry is HOME:
            _HEADING.set(st.container(key="page-heading", width="content").empty())
            heading(translate(entry.heading))
        else:
            st.title(translate(entry.title), anchor=False, help=translate(entry.summary), width="content")
        if presenting.is_on():
            guarded()(class_door.leading)()
            presenting.head()
            return
        with st.container(horizontal=True, key="page-views", wrap=False, gap=None):
            for other in beside(entry):
                st.page_link(other.file, label=_here(_way(entry, other), is_here=other is entry))


def heading(said: str) -> None:
    """Writes the heading of the first page, which depends on what its model does."""
    (_HEADING.get() or st.empty()).title(said, anchor=False, width="content")


def _here(label: str, *, is_here: bool) -> str:
    """The label of a link, by whose strong letters the style finds where the reader is: a container around each link
    would be one more message to the browser."""
    return f"**{label}**" if is_here else label


def _way(entry: Entry, other: Entry) -> str:
    """The label of the way from a page to one beside it: back and on in the course."""
    title = translate(other.title)
    if entry is HOME:
        left = progress.station()
        return _("Go on: {station} →", station=say("path", left, "title")) if left else _("Learn it step by step →")
    if entry not in COURSE or other not in COURSE:
        return title
    return f"← {title}" if COURSE.index(other) < COURSE.index(entry) else f"{title} →"


def _fold() -> None:
    """Draws the folded bar on a phone: the sentence, and the button that unfolds the rest."""
    text = state.view().text.strip()
    if state.arrives(_OPEN) or st.session_state.get(_READ, text) != text:  # what was typed is to be seen
        st.session_state[_OPEN] = False
    st.session_state[_READ] = text
    widths = accumulate(2 if east_asian_width(character) in "WF" else 1 for character in text)
    fitting = text[: sum(width <= SHOWN_ON_A_PHONE for width in widths)]
    shown = text if fitting == text else fitting + "…"
    with st.container(key="bar-fold"):
        st.checkbox(
            _("Menu · {text}", text=plain(shown)) if shown else _("Menu · type a sentence"),
            on_change="ignore",
            persist_state="session",
            key=_OPEN,
        )


def _language() -> None:
    """The button of the next language: of two, the other one."""
    codes = list(LANGUAGES)
    following = codes[(codes.index(language()) + 1) % len(codes)]
    st.button(LANGUAGES[following], key="vizformer.language", type="tertiary", on_click=_speak, args=(following,))


def _speak(code: str) -> None:
    state.update(lang=code)
