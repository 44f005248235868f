"""Where a class is, and where it is stuck: counts without names, for the teacher.

class_counts.show(asks)      # below the title of Teach, while a class is open; asks: the questions of the path's stations
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import streamlit as st

from vizformer.components.stations import Ask
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import class_door, presenting
from vizformer.web.frame.sitemap import COURSE, PATH, number
from vizformer.web.link.languages import SOURCE
from vizformer.web.widgets import model_input, questions
from vizformer.web.widgets.class_question import EVERY, Row, table
from vizformer.web.widgets.misconceptions import general
from vizformer.web.words import lesson_words
from vizformer.web.words.errors import guarded
from vizformer.web.words.i18n import _, language, translate

Stations = Callable[[Subject, str], Mapping[str, Ask]]
Said = tuple[str, Mapping[str, str]]  # a question, and its misconceptions by their names


@guarded()
def show(stations: Stations) -> None:
    """The counts of the class that this session leads, and the button that puts them on the projector."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.subheader(_("Where the class is"), anchor=False, width="content")
        if not presenting.is_on():
            st.button(_("On the projector"), on_click=presenting.begin, key="class.project", type="tertiary")

    @st.fragment(run_every=EVERY)
    def counted() -> None:
        counts = class_door.counts()
        here = sum(n for name, n in counts.items() if name.startswith("there "))
        head = _("Students: {n}. First answers count; parts where most were wrong come first.", n=here)
        st.html(table(head, rows(counts, lambda asked: _said(asked, model_input.seen(), language(), stations))))

    counted()


def rows(counts: Mapping[str, int], said: Callable[[str], Said]) -> Iterator[Row]:
    """A row for each part where somebody is or has answered, the most wrong first; below it one for each of its questions.

    counts: as in `Rooms.counts`; what is no part or question of the course is counted as another page, or not at all.
    """
    there, right, wrong = Counter[str](), Counter[str](), defaultdict[str, Counter[str]](Counter)
    for name, n in counts.items():
        kind, place, misconception = f"{name} ".split(" ")[:3]
        if kind == "wrong":
            wrong[place][misconception] = n
        else:
            (there if kind == "there" else right)[place] = n

    def most_wrong(asks: Sequence[str]) -> int:
        return max((wrong[asked].total() for asked in asks), default=0)

    found = []
    for place, title, asks in _parts():
        answered = [asked for asked in asks if right[asked] or asked in wrong]
        if answered or there[place]:
            found.append((place, title, sorted(answered, key=lambda asked: -wrong[asked].total())))
    for place, title, asks in sorted(found, key=lambda one: (-most_wrong(one[2]), -there[one[0]])):
        yield Row(title, _("{n} here", n=there.pop(place, 0)), is_strong=True)
        for asked in asks:
            missed, known = wrong[asked], said(asked)
            of = missed.total() + right[asked]
            counted = _("{wrong} of {answered} wrong", wrong=missed.total(), answered=of)
            yield Row(known[0], counted, missed.total() / of, remark=_most(missed, known[1]))
    if elsewhere := there.total():
        yield Row(_("On other pages"), _("{n} here", n=elsewhere), is_strong=True)


def _parts() -> Iterator[tuple[str, str, list[str]]]:
    """Each station and part of a lesson: its place, its title, and its questions."""
    for lesson in (PATH, *COURSE):
        for part, words in lesson_words.parts(lesson.url, SOURCE).items():
            title = lesson_words.say(lesson.url, part, "title")
            names = [part] if lesson is PATH else words.get("asks", ())
            at = number(lesson.url, part) if lesson is not PATH else translate(PATH.title)
            yield f"{lesson.url}/{part}", f"{at} · {title}", [f"{lesson.url}/{name}" for name in names]


def _most(missed: Counter[str], names: Mapping[str, str]) -> str:
    """The most common misconception that has words."""
    for name, n in missed.most_common():
        if said := names.get(name) or general(name):
            return _("Most often ({n}): {said}", n=n, said=said)
    return ""


@cached
def _said(asked: str, subject: Subject, code: str, stations: Stations) -> Said:
    """A question and its misconceptions in the language `code`, which is the reader's, about the teacher's sentence."""
    lesson, name = asked.split("/")
    if lesson == PATH.url:
        ask = stations(subject, code).get(name)
        return ("", {}) if ask is None else (ask.words, {one.key: f"“{one.text}”" for one in ask.options})
    found: Any = questions.of_lesson(lesson, name, subject)
    if found is None:
        return "", {}
    return found.question, {one.name: one.said(found.written(one.given)) for one in found.mistakes}
