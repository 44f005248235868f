"""The plan to teach by (assets/lessons/plan.toml): minute by minute, and where the lectures of a course stand in the app."""

import re
import tomllib
from functools import cache
from itertools import accumulate
from typing import Any

import streamlit as st

from vizformer.assets import asset
from vizformer.web.frame.sitemap import COURSE, PAGES, number
from vizformer.web.link import state
from vizformer.web.link.languages import SOURCE
from vizformer.web.widgets import choices
from vizformer.web.words import lesson_words
from vizformer.web.words.errors import guarded
from vizformer.web.words.i18n import _, language

MINUTES = (45, 90)
_QUOTED = re.compile('^["“](.+?)["”]', re.MULTILINE)


@cache
def tables() -> dict[str, list[dict[str, Any]]]:
    return tomllib.loads(asset("lessons", "plan.toml").read_text(encoding="utf-8"))


@guarded()
def show() -> None:
    """The chosen plan, a row for each of its places: its minutes and a link; what is asked; what often goes wrong."""
    st.subheader(_("Plan"), anchor=False)
    names = {n: _("{n} minutes", n=n) for n in MINUTES} | {0: _("Lectures")}
    chosen = choices.one_of(_("Plan"), "teach.plan", names, labelled=False)
    for minutes, row in timed(MINUTES.index(chosen)) if chosen else ():
        place, asked, wrong = st.columns([2, 3, 2], gap="medium")
        with place:
            _link(row["part"], minutes)
        asked.markdown(said(row))
        if found := misconception(row["part"], language()):
            wrong.markdown(_("Often got wrong: {said}", said=found))
    for row in () if chosen else tables()["lecture"]:
        st.markdown(f"**{said(row)}**")
        with st.container(horizontal=True):
            for part in row["parts"]:
                _link(part)


def said(row: dict[str, Any]) -> str:
    """What a row says in the reader's language; in English where it lacks that one."""
    text: str = row.get(language(), row[SOURCE])
    return text


def timed(plan: int) -> list[tuple[str, dict[str, Any]]]:
    """The rows of a plan, each with the minutes in which it is taught."""
    rows = [row for row in tables()["row"] if row["minutes"][plan]]
    ends = list(accumulate(row["minutes"][plan] for row in rows))
    return [(f"{end - row['minutes'][plan]}–{end}", row) for end, row in zip(ends, rows, strict=True)]


def misconception(place: str, code: str) -> str:
    """The misconception that a part of a lesson names first; empty where it names none."""
    page, part = place.split(".")
    words = lesson_words.parts(page, code).get(part) or lesson_words.parts(page, SOURCE)[part]
    found = _QUOTED.search("\n".join(words.get("wrong", ())))
    return found[0] if found else ""


def _link(place: str, minutes: str = "") -> None:
    page, part = place.split(".")
    title = lesson_words.say(page, part, "title")
    at = number(page, part) if PAGES[page] in COURSE else ""
    label = " · ".join(filter(None, (minutes, at, title)))
    st.page_link(PAGES[page].file, query_params=state.lead(part=part), label=label)
