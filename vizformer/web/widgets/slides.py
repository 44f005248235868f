"""A lesson at a projector: a slide for each part, the steps between them, and the speaker's notes."""

import re
from dataclasses import dataclass
from functools import cache, lru_cache

import streamlit as st

from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import presenting
from vizformer.web.frame.sitemap import COURSE, Entry, numbered
from vizformer.web.link.languages import SOURCE
from vizformer.web.widgets.laboratories import Parts, Shown, beside_others, laboratory
from vizformer.web.words import lesson_words
from vizformer.web.words.i18n import _, language, show_note, translate
from vizformer.web.words.terms import marked

_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[^a-z])|(?<=[。！？])(?![”）])")  # where the first one of a text ends


@dataclass(frozen=True)
class Prose:
    """The text of a part, its terms marked (`words.terms`), what there is to try, what is often got wrong; which terms."""

    text: str = ""
    tries: tuple[str, ...] = ()
    wrongs: tuple[str, ...] = ()
    terms: frozenset[str] = frozenset()

    @property
    def lead(self) -> str:
        """The first sentence, with which the part opens."""
        return _SENTENCE.split(self.text, maxsplit=1)[0]

    @property
    def rest(self) -> str:
        return self.text.removeprefix(self.lead).lstrip()


def show(entry: Entry, parts: Parts, index: int, subject: Subject | None) -> None:
    """The slide of a part, or the notes to it and the slide that comes next."""
    if presenting.is_notes():
        notes, preview = st.columns(2, gap="large")
        with notes, st.container(key="slide-notes-text"):
            _notes(parts[index], prose(entry.url, parts[index].key))
        with preview:
            show_note("Next slide")
            if index + 1 < len(parts):
                with st.container(key="slide-preview", border=True):
                    _slide(entry, parts[index + 1], subject)
    else:
        _slide(entry, parts[index], subject)
    _steps(entry, parts, index)


@laboratory
def _slide(entry: Entry, part: Shown, subject: Subject | None) -> None:
    """The name of the part, its sentence, and its picture with what can be turned."""
    with st.container(key="slide-lead"):
        st.subheader(part.name, anchor=False)
        st.markdown(prose(entry.url, part.key).lead)
    picture, asked = st.container(key="lesson-laboratory"), st.container(key="slide-asked")
    if subject is not None:
        with picture, beside_others(asked):
            part.draw(subject)


def _notes(part: Shown, words: Prose) -> None:
    st.subheader(part.name, anchor=False)
    st.markdown(words.text)
    boxes(words)


def boxes(words: Prose) -> None:
    """What there is to try, and what is often got wrong, written out."""
    for title, texts in ((_("Try this"), words.tries), (_("Often got wrong"), words.wrongs)):
        for text in texts:
            st.markdown(f"**{title}**  \n{text}")


def _steps(entry: Entry, parts: Parts, number: int) -> None:
    """The steps back and on, and where one is; after the last slide, to the next lesson."""
    lesson, count = COURSE.index(entry), len(parts)
    with st.container(
        key="slide-steps", horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"
    ):
        _step("back", _("← Back"), "← {}", parts, number - 1, lesson - 1)
        where = _("Lesson {lesson} · slide {number} of {count}", lesson=lesson + 1, number=number + 1, count=count)
        st.caption(where, width="content")
        _step("next", _("Next →"), "{} →", parts, number + 1, lesson + 1)


def _step(way: str, label: str, lead: str, parts: Parts, at: int, lesson: int) -> None:
    """To another part or, past the first or the last one, to another lesson, whose title is put into `lead`."""
    key, is_part = f"slide-{way}", 0 <= at < len(parts)
    if is_part or not 0 <= lesson < len(COURSE):
        to = parts[at].key if is_part else ""
        st.button(label, on_click=presenting.go, args=(to,), disabled=not is_part, key=key, type="tertiary")
        return
    with st.container(key=key, width="content"):
        st.page_link(COURSE[lesson].file, label=lead.format(translate(COURSE[lesson].title)))


# What stands beside the laboratory of a part of a lesson, as Markdown (see `words.lesson_words`).
def prose(lesson: str, part: str) -> Prose:
    """The words of a part in the reader's language; empty where there are none."""
    return lesson_prose(lesson, language()).get(part, Prose())


@cache
def lesson_prose(lesson: str, code: str) -> dict[str, Prose]:
    """Part -> words of a lesson in the language `code`, in English where there is no translation."""
    tables = lesson_words.parts(lesson, code) or lesson_words.parts(lesson, SOURCE)
    found = {}
    for part, words in tables.items():
        if "text" in words:  # (a station of the path has none)
            seen: set[str] = set()
            text = marked(numbered(words["text"].strip()), code, lesson, seen)
            tries, wrongs = (tuple(map(numbered, words.get(key, ()))) for key in ("try", "wrong"))
            found[part] = Prose(text, tries, wrongs, frozenset(seen))
    return found


@lru_cache(maxsize=4096)
def noted(text: str, lesson: str, part: str, code: str) -> str:
    """A caption of a part, with the numbers of lessons; those of its terms marked that the text of the part has not."""
    return marked(numbered(text), code, lesson, set(lesson_prose(lesson, code).get(part, Prose()).terms))
