"""Search: a box that finds every page, part of a lesson and term of the glossary by its name in any language."""

from collections.abc import Iterator
from functools import cache

import streamlit as st

from vizformer.messages import Message
from vizformer.web.frame.sitemap import (
    COURSE,
    GLOSSARY,
    LISTED,
    NOTATION_LIST,
    NOTATIONS,
    PAGES,
    READING,
    READING_LIST,
    Entry,
)
from vizformer.web.link import link_settings, state
from vizformer.web.link.languages import LANGUAGES, SOURCE, catalogue
from vizformer.web.words import lesson_words
from vizformer.web.words.i18n import _, language
from vizformer.web.words.terms import read_terms

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
