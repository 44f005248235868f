"""A lesson: its parts one at a time, words beside the laboratory, questions to predict before the answer is shown.

A page lists its parts and draws the laboratory of each; everything around them is here:

    lesson.show(sitemap.MASKS, [lesson.Part("causal", N_("Causal"), causal), ...], terms=("mask", "softmax"))

    @laboratory
    def causal(subject: Subject) -> None:
        st.slider(_("Window"), 1, 8, **lesson.setting("masks.window", 3, range(1, 9)))
        lesson.formula(r"...", live=r"...", code="...")
        lesson.ask(lesson.Choice("masks", "leak", question, choices, answer, why))
"""

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import streamlit as st

from vizformer.explain import standalone
from vizformer.explain.snippets import Given
from vizformer.messages import Message
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import inline_scripts, presenting, progress
from vizformer.web.frame.sitemap import COURSE, GLOSSARY, Entry
from vizformer.web.link import link_settings, state
from vizformer.web.link.link_settings import Setting
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.link.view import View
from vizformer.web.widgets import glossary, questions, slides
from vizformer.web.widgets.cell_question import ask_cell
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.widgets.lesson_text import prose
from vizformer.web.widgets.model_input import subject_box
from vizformer.web.widgets.questions import CellChoice, Choice, Grid, Number, Question, Registry, is_answered, near
from vizformer.web.words.i18n import _, translate

if TYPE_CHECKING:
    from vizformer.web.widgets.lab import Laboratory

__all__ = [
    "CellChoice",
    "Choice",
    "Grid",
    "Number",
    "Part",
    "Question",
    "Registry",
    "ask",
    "change",
    "formula",
    "go_to",
    "held",
    "is_answered",
    "near",
    "pasteable",
    "setting",
    "show",
    "value",
]

_LAST = "lesson.last"
_UNNAMED = "lesson.unnamed"  # the part that is shown though the link names none, where that depends on the view


@dataclass(frozen=True)
class Part:
    """A part of a lesson.

    Attributes:
        key: its name in links and in the lesson's Markdown, small letters.
        title: on its tab.
        draw: draws the laboratory, for the subject of the page; a fragment.
        wide: the laboratory needs the whole width: the words go above it.
    """

    key: str
    title: Message
    draw: Callable[[Subject], None]
    wide: bool = False

    @property
    def name(self) -> str:
        """Its title in the reader's language."""
        return translate(self.title)


Parts = Sequence["Part | Laboratory"]


def show(
    entry: Entry,
    parts: Parts,
    *,
    terms: Sequence[str] = (),
    unnamed: Callable[[View], str] | None = None,
    usable: Callable[[ModelRef], bool] | None = None,
) -> None:
    """Draws a lesson: progress, the shared sentence, the chosen part, and the way on.

    Args:
        entry, parts: the lesson; the first part is shown where the link names none.
        terms: keys of the glossary.
        unnamed: instead, the part that a link opens which names none.  Whatever changes what it depends on must say
            `held` along with it.
        usable: the models that can fill the lesson; it opens on one where the link names none.
    """
    progress.remember()
    _body(subject_box(usable), entry, parts, terms, unnamed)


@laboratory
def _body(
    subject: Subject | None,
    entry: Entry,
    parts: Parts,
    terms: Sequence[str],
    unnamed: Callable[[View], str] | None,
) -> None:
    """All but the sentence and the model: another part runs without the page's frame."""
    if presenting.is_on():
        index = _shown(entry, parts, unnamed)
        part = parts[index]
        if subject is not None:
            slides.draw(part.name, prose(entry.url, part.key), _boxes, lambda: part.draw(subject))
        slides.steps(entry, [one.key for one in parts], index)
        return
    with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"):
        index = _choose(entry, parts, unnamed)
        st.caption(
            _(
                "Lesson {number} of {count} · {answered} of {questions} questions answered",
                number=COURSE.index(entry) + 1,
                count=len(COURSE),
                answered=progress.answered(entry.url),
                questions=len(progress.QUESTIONS[entry.url]),
            ),
            width="content",
        )
        st.caption(_before(entry), width="content")
    part = parts[index]
    if subject is not None:
        _part(entry, part, subject)
    _onward(entry, parts, index)
    _terms(terms)
    _course()


def _before(entry: Entry) -> str:
    """How long the lesson takes, and which lessons come before it."""
    titles = {one.url: f"{number} · {translate(one.title)}" for number, one in enumerate(COURSE, 1)}
    if not entry.after:
        return _("About {minutes} minutes. No lesson has to come before it.", minutes=entry.minutes)
    lessons = _("; ").join(titles[url] for url in entry.after)
    return _("About {minutes} minutes. Before it: {lessons}", minutes=entry.minutes, lessons=lessons)


def _shown(entry: Entry, parts: Parts, unnamed: Callable[[View], str] | None) -> int:
    """The number of the part that is shown."""
    keys = [part.key for part in parts]
    last, st.session_state[_LAST] = st.session_state.get(_LAST, entry.url), entry.url
    if last != entry.url:
        slides.begin()
        if state.view().part not in keys:  # from another lesson: nobody asked for it here
            state.update(part="" if unnamed is None or unnamed(state.view()) == keys[0] else keys[0])
    chosen = state.fit(part=("", *keys)).part
    st.session_state[_UNNAMED] = ""
    if not chosen:
        chosen = keys[0] if unnamed is None else unnamed(state.view())
        st.session_state[_UNNAMED] = "" if unnamed is None else chosen
    return keys.index(chosen)


def _choose(entry: Entry, parts: Parts, unnamed: Callable[[View], str] | None) -> int:
    """The tabs; the number of the part that is shown."""
    index = _shown(entry, parts, unnamed)
    keys = [part.key for part in parts]
    chosen = keys[index]
    tabs = f"lesson.part.{entry.url}"
    if state.arrives(tabs) or st.session_state.get(tabs) != chosen:
        st.session_state[tabs] = chosen
    titles = {part.key: f"{index + 1} · {part.name}" for index, part in enumerate(parts)}
    st.segmented_control(
        _("Part"),
        keys,
        format_func=titles.__getitem__,
        required=True,
        label_visibility="collapsed",
        key=tabs,
        on_change=lambda: go_to(st.session_state[tabs]),
        persist_state="session",
    )
    inline_scripts.run("part.js", lesson=entry.url, part=str(index))
    return index


def held() -> dict[str, str]:
    """What a change of the view must say along with it, so that its link opens the part that is on the screen."""
    shown = "" if state.view().part else st.session_state.get(_UNNAMED, "")
    return {"part": shown} if shown else {}


def go_to(part: str) -> None:
    """Shows another part of the lesson; for callbacks."""
    state.update(part=part)


def _part(entry: Entry, part: "Part | Laboratory", subject: Subject) -> None:
    words = prose(entry.url, part.key)
    if part.wide:
        with st.container(key="lesson-words"):
            st.markdown(words.text)
        part.draw(subject)
        _boxes(words.tries, words.wrongs)
        return
    left, right = st.columns([2, 3], gap="large")
    with left:
        st.markdown(words.text)
        _boxes(words.tries, words.wrongs)
    with right:
        part.draw(subject)


def _boxes(tries: Sequence[str], wrongs: Sequence[str]) -> None:
    to_try, got_wrong = _("Try this."), _("Often got wrong.")  # the extractor does not look into f-strings
    for text in tries:
        st.info(f"**{to_try}** {text}")
    for text in wrongs:
        st.warning(f"**{got_wrong}** {text}")


def _onward(entry: Entry, parts: Parts, index: int) -> None:
    """To the next part and, after the last one, to the next lesson."""
    st.divider()
    number = COURSE.index(entry)
    with st.container(horizontal=True, horizontal_alignment="distribute"):
        if index > 0:
            title = parts[index - 1].name
            st.button(f"← {title}", on_click=go_to, args=(parts[index - 1].key,), key="lesson.back")
        elif number > 0:
            st.page_link(COURSE[number - 1].file, label=f"← {translate(COURSE[number - 1].title)}")
        if index + 1 < len(parts):
            title = parts[index + 1].name
            label = _("Next: {title} →", title=title)
            st.button(label, on_click=go_to, args=(parts[index + 1].key,), key="lesson.next", type="primary")
        elif number + 1 < len(COURSE):
            following = translate(COURSE[number + 1].title)
            st.page_link(COURSE[number + 1].file, label=_("Next lesson: {title} →", title=following))


def _terms(names: Sequence[str]) -> None:
    with st.expander(_("Terms of this lesson")):
        glossary.entries(names)
        st.page_link(GLOSSARY.file, label=_("The whole glossary"))


def _course() -> None:
    """All lessons, and how many of their questions have been answered."""
    with st.expander(_("The course: what I have done")):
        for entry in COURSE:
            st.page_link(entry.file, label=progress.said(entry))
        st.caption(_("Kept in this browser, nowhere else."))
        if st.button(_("Forget my progress"), on_click=progress.forget, key="lesson.forget"):
            st.rerun()  # the whole page: it is there that the browser is told


# --- what the laboratories are made of --------------------------------------------------------------------------------


def setting(name: str, default: Setting, options: Collection[Setting] | None = None) -> dict[str, Any]:
    """The keyword arguments that tie a keyed widget to a setting of the lessons, which the link carries.

    Args:
        name: "lesson.setting", small letters.
        default: the value that is left out of the link; its type is the setting's.
        options: what the widget can show; anything else in a link counts as not set.
    """
    key, chosen = f"setting.{name}", value(name, default, options)
    # A slider with other ends is another widget to Streamlit, and begins where the key was last *assigned*, not where
    # the reader moved it: assigned again, then, though the key seems to have the value.
    ends, known = None if options is None else tuple(options), f"{key}.options"
    again = st.session_state.get(known) != ends or state.arrives(key)
    if again or key not in st.session_state or st.session_state[key] != chosen:
        st.session_state[key] = chosen
    st.session_state[known] = ends
    return {"key": key, "on_change": _take, "args": (name, key, default), "persist_state": "session"}


def value(name: str, default: Setting, options: Collection[Setting] | None = None) -> Setting:
    """The setting `name` as it stands."""
    return link_settings.value(link_settings.read(state.view().settings).get(name), default, options)


def _take(name: str, key: str, default: Setting) -> None:
    new = st.session_state[key]  # as in `state._take`: None, or an old option's label, keeps what was
    if isinstance(new, type(default)) or (isinstance(default, float) and isinstance(new, int)):
        change(name, new, default)


def change(name: str, new: Setting, default: Setting) -> None:
    """Sets a setting; for callbacks of other widgets."""
    settings = link_settings.read(state.view().settings)
    settings.pop(name, None)
    if new != default:
        settings[name] = link_settings.text(new)
    if link_settings.can_hold(name, link_settings.text(new)):
        state.update(settings=link_settings.write(settings))


def ask(question: Question | None) -> None:
    """Asks a question, to be answered before the answer is shown; nothing where the text has none to offer."""
    match question:
        case Choice():
            questions.ask(question)
        case Number() if math.isfinite(question.answer):  # (not so after an edit that overflows)
            questions.ask_number(question)
        case CellChoice():
            ask_cell(question)


def formula(symbols: str, *, live: str = "", code: str = "", given: Mapping[str, Given] | None = None) -> None:
    """A formula in symbols, with the numbers on the screen in it, and the PyTorch line that computes it.

    `given` are the numbers that the code reads, by name: those that are short are written out before it.
    """
    st.latex(symbols)
    if live:
        st.latex(re.sub(r"(?<!\\)\bnan\b", r"\\text{NaN}", re.sub(r"(?<!\\)\binf\b", r"\\infty", live)))
    if code:
        st.caption(_("The same in PyTorch"))
        st.code(pasteable(code, given or {}), language="python", wrap_lines=True)


def pasteable(code: str, given: Mapping[str, Given]) -> str:
    """Code with what it imports and the numbers that it reads."""
    return standalone(code, given).text(_("torch.randn stands in for tables that are too long to write out"))
