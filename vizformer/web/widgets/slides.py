"""A lesson at a projector: its slides, an idea or a picture each, the steps between them, and the speaker's notes."""

import re
from collections.abc import Mapping, Sequence

import streamlit as st

from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import presenting
from vizformer.web.frame.sitemap import COURSE, Entry
from vizformer.web.widgets.laboratories import Parts, Shown, beside_others, laboratory
from vizformer.web.widgets.lesson_text import Prose, prose
from vizformer.web.words.i18n import _, show_note, translate
from vizformer.web.words.terms import unmarked

LABORATORY = "laboratory"
FEW_BYTES = 400  # of a slide's words, up to which they are written larger
_BELONGS_TO_WHAT_IS_BEFORE = re.compile(r"[-|$`]|\d+\. ")


def of(words: Prose) -> dict[str, str]:
    """The slides of a part: their names in links, and the words on them; none on the laboratory."""
    kinds: Mapping[str, Sequence[str]] = {
        "words": paragraphs(words.text),
        LABORATORY: [""],
        "try": words.tries,
        "wrong": words.wrongs,
    }
    return {
        f"{kind}{number if number > 1 else ''}": text
        for kind, texts in kinds.items()
        for number, text in enumerate(texts, 1)
    }


def paragraphs(text: str) -> list[str]:
    """The ideas of a text; a list, a table, a formula or a program stays with what is said before it."""
    found: list[str] = []
    for block in filter(None, text.split("\n\n")):
        if found and _BELONGS_TO_WHAT_IS_BEFORE.match(block):
            found[-1] += f"\n\n{block}"
        else:
            found.append(block)
    return found


def show(entry: Entry, parts: Parts, index: int, subject: Subject | None) -> None:
    """The slide that the view asks for, or the notes to it."""
    slides = [
        (at, name, text) for at, part in enumerate(parts) for name, text in of(prose(entry.url, part.key)).items()
    ]
    of_part = [number for number, (at, *__) in enumerate(slides) if at == index]
    now = next((number for number in of_part if slides[number][1] == presenting.slide()), of_part[0])
    following = slides[now + 1] if now + 1 < len(slides) else None

    def draw(slide: tuple[int, str, str]) -> None:
        at, name, text = slide
        _draw(parts[at], name, text, subject)

    if presenting.is_notes():
        notes, preview = st.columns(2, gap="large")
        with notes, st.container(key="slide-notes-text"):
            _notes(parts[index], prose(entry.url, parts[index].key))
        with preview:
            show_note("Next slide")
            if following is not None:
                with st.container(key="slide-preview", border=True):
                    draw(following)
    else:
        draw(slides[now])
    _steps(entry, [(parts[at].key, name) for at, name, __ in slides], now, parts[index].name)


@laboratory
def _draw(part: Shown, name: str, text: str, subject: Subject | None) -> None:
    if name != LABORATORY:
        with st.container(key="slide-words-few" if len(unmarked(text).encode()) < FEW_BYTES else "slide-words"):
            headings = {"words": part.name, "try": _("Try this"), "wrong": _("Often got wrong")}
            st.subheader(headings[name.rstrip("0123456789")], anchor=False)
            st.markdown(text)
    elif subject is not None:
        picture, asked = st.container(key="lesson-laboratory"), st.container(key="slide-asked")
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


def _steps(entry: Entry, slides: Sequence[tuple[str, str]], number: int, title: str) -> None:
    """The steps back and on, and where one is; after the last slide, to the next lesson."""
    last, lesson = len(slides) - 1, COURSE.index(entry)
    with st.container(
        key="slide-steps", horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"
    ):
        if number > 0 or lesson == 0:
            st.button(
                _("← Back"),
                on_click=presenting.go,
                args=slides[number - 1],
                disabled=number == 0,
                key="slide-back",
                type="tertiary",
            )
        else:
            with st.container(key="slide-back", width="content"):
                st.page_link(COURSE[lesson - 1].file, label=f"← {translate(COURSE[lesson - 1].title)}")
        where = _("Lesson {lesson} · slide {number} of {count}", lesson=lesson + 1, number=number + 1, count=last + 1)
        st.caption(f"{where} · {title}", width="content")
        if number < last or lesson + 1 == len(COURSE):
            st.button(
                _("Next →"),
                on_click=presenting.go,
                args=slides[min(number + 1, last)],
                disabled=number == last,
                key="slide-next",
                type="tertiary",
            )
        else:
            with st.container(key="slide-next", width="content"):
                st.page_link(COURSE[lesson + 1].file, label=f"{translate(COURSE[lesson + 1].title)} →")
