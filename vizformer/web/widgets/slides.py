"""A lesson at a projector: its slides, two for each part, and the steps from one to the next."""

from collections.abc import Callable, Sequence

import streamlit as st

from vizformer.web.frame import presenting
from vizformer.web.frame.sitemap import COURSE, Entry
from vizformer.web.link import state
from vizformer.web.widgets.lesson_text import Prose
from vizformer.web.words.i18n import _, translate

ORDER = ("words", "laboratory")


def draw(
    title: str, words: Prose, boxes: Callable[[Sequence[str], Sequence[str]], None], laboratory: Callable[[], None]
) -> None:
    """The slide that the view asks for: the words of a part, or its laboratory.

    Args:
        title: of the part.
        words: of the part.
        boxes: draws what there is to try, and what is often got wrong.
        laboratory: draws it.
    """
    if state.view().slide == "words":
        with st.container(key="slide-words"):
            st.subheader(title, anchor=False)
            st.markdown(words.text)
            boxes(words.tries, words.wrongs)
    else:
        st.subheader(title, anchor=False)
        laboratory()


def steps(entry: Entry, keys: Sequence[str], index: int) -> None:
    """The steps back and on, and where one is; after the last slide, to the next lesson.

    Args:
        entry: the lesson.
        keys: of its parts.
        index: of the part that is shown.
    """
    number, last = 2 * index + ORDER.index(state.view().slide), 2 * len(keys) - 1
    lesson = COURSE.index(entry)
    with st.container(
        key="slide-steps", horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"
    ):
        if number > 0 or lesson == 0:
            st.button(
                _("← Back"),
                on_click=_go,
                args=(keys, number - 1),
                disabled=number == 0,
                key="slide-back",
                type="tertiary",
            )
        else:
            with st.container(key="slide-back", width="content"):
                st.page_link(COURSE[lesson - 1].file, label=f"← {translate(COURSE[lesson - 1].title)}")
        st.caption(
            _("Lesson {lesson} · slide {number} of {count}", lesson=lesson + 1, number=number + 1, count=last + 1),
            width="content",
        )
        if number < last or lesson + 1 == len(COURSE):
            st.button(
                _("On →"),
                on_click=_go,
                args=(keys, number + 1),
                disabled=number == last,
                key="slide-next",
                type="tertiary",
            )
        else:
            with st.container(key="slide-next", width="content"):
                st.page_link(COURSE[lesson + 1].file, label=f"{translate(COURSE[lesson + 1].title)} →")


def _go(keys: Sequence[str], number: int) -> None:
    part, slide = divmod(number, 2)
    state.update(part=keys[part], slide=ORDER[slide])


def begin() -> None:
    """Another lesson begins with its first slide."""
    if presenting.is_on():
        state.update(slide=ORDER[0])
