"""A lesson: its parts one at a time, each a laboratory with its words and its question beside it.

A page hands over its parts (`widgets.lab`); everything around them is here:

    lesson.show(sitemap.MASKS, masks.PARTS, terms=("mask", "softmax"))
"""

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from vizformer import context_value
from vizformer.explain import standalone
from vizformer.explain.snippets import Given
from vizformer.messages import N_
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import classroom, inline_scripts, presenting, progress, sitemap
from vizformer.web.frame.sitemap import COURSE, GLOSSARY, Entry
from vizformer.web.link import link_settings, state
from vizformer.web.link.gone_parts import NEAREST
from vizformer.web.link.languages import SOURCE
from vizformer.web.link.link_settings import Setting
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.link.view import View
from vizformer.web.widgets import class_question, glossary, questions, slides
from vizformer.web.widgets.cell_question import ask_cell
from vizformer.web.widgets.laboratories import Parts, Shown, beside_others, folded, is_open, laboratory, place_beside
from vizformer.web.widgets.misconceptions import Grid
from vizformer.web.widgets.model_input import subject_box
from vizformer.web.widgets.questions import CellChoice, Choice, Number, Question, Registry, is_answered, near
from vizformer.web.widgets.slides import Prose, prose
from vizformer.web.widgets.whole_model.beside import draw_beside
from vizformer.web.words import lesson_words
from vizformer.web.words.i18n import _, language, show_note, translate

__all__ = [
    "CellChoice",
    "Choice",
    "Grid",
    "Number",
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

LAST = "lesson.last"
_AGAIN = "lesson.again"  # the part that is shown, and the question that is asked again in it
PAPER_WIDTH = 700  # px: what fits between the margins of A4 and of a letter
_formulas: ContextVar[list["Formula"] | None] = ContextVar("formulas", default=None)  # of the part that is drawn
_above: ContextVar[DeltaGenerator | None] = ContextVar("above", default=None)  # its sentence, before the picture
_UNNAMED = "lesson.unnamed"  # the part that is shown though the link names none, where that depends on the view


def show(
    entry: Entry,
    parts: Parts,
    *,
    terms: Sequence[str] = (),
    unnamed: Callable[[View], str] | None = None,
    usable: Callable[[ModelRef], bool] | None = None,
) -> None:
    """Draws a lesson: the shared sentence, its parts, the chosen one, the way on, and what has been done.

    `unnamed`: instead of the first part, the one that a link opens which names none.  Whatever changes what it depends
        on must say `held` along with it.
    `usable`: the models that can fill the lesson; it opens on one where the link names none.
    """
    progress.remember()
    _body(subject_box(usable), entry, parts, terms, unnamed)


@laboratory
def _body(
    subject: Subject | None, entry: Entry, parts: Parts, terms: Sequence[str], unnamed: Callable[[View], str] | None
) -> None:
    """All but the sentence and the model: another part runs without the page's frame."""
    if presenting.is_on():
        slides.show(entry, parts, _shown(entry, parts, unnamed), subject)
        return
    if presenting.is_printed():
        if st.session_state.setdefault(LAST, entry.url) == entry.url:
            _paper(entry, parts, subject)
            return
        presenting.end()  # another lesson: nobody asked to print it
    index = _choose(entry, parts, unnamed)
    if subject is not None:
        _part(entry, parts[index], subject)
    _onward(entry, parts, index)
    _about(entry)
    _terms(terms)
    _course()


def _about(entry: Entry) -> None:
    """Which lesson this is, what has been answered, how long it takes, and which lessons come before it."""
    where = _(
        "Lesson {number} of {count} · {answered} of {questions} questions answered",
        number=sitemap.number(entry.url),
        count=len(COURSE),
        answered=progress.answered(entry.url),
        questions=len(progress.QUESTIONS[entry.url]),
    )
    with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"):
        st.caption(f"{where} · {_before(entry)}", width="content")
        st.button(_("Print this lesson"), on_click=presenting.print_out, key="lesson.print", type="tertiary")


def _before(entry: Entry) -> str:
    """How long the lesson takes, and which lessons come before it."""
    taken = lesson_words.of_lesson(entry.url, language())
    if not entry.after:
        return _("About {minutes} minutes. It needs no other lesson.", minutes=taken)
    lessons = _("; ").join(sitemap.titled(one) for one in COURSE if one.url in entry.after)
    return _("About {minutes} minutes. Before it: {lessons}", minutes=taken, lessons=lessons)


def _shown(entry: Entry, parts: Parts, unnamed: Callable[[View], str] | None) -> int:
    keys = [part.key for part in parts]
    last, st.session_state[LAST] = st.session_state.get(LAST, entry.url), entry.url
    if last != entry.url and state.view().part not in keys:  # from another lesson: nobody asked for it here
        state.update(part="" if unnamed is None or unnamed(state.linked()) == keys[0] else keys[0])
    if (nearest := NEAREST.get(f"{entry.url}/{state.view().part}")) in keys:
        state.update(part=nearest)
        state.note(
            N_(
                "The link names a part that this lesson no longer has. Here is the nearest one; the search in the "
                "bar finds every part and term."
            )
        )
    chosen = state.fit(part=("", *keys)).part
    st.session_state[_UNNAMED] = ""
    if not chosen:
        chosen = keys[0] if unnamed is None else unnamed(state.linked())
        st.session_state[_UNNAMED] = "" if unnamed is None else chosen
    classroom.stand(entry.url, chosen)
    return keys.index(chosen)


def _choose(entry: Entry, parts: Parts, unnamed: Callable[[View], str] | None) -> int:
    """The tabs; the number of the part that is shown."""
    index = _shown(entry, parts, unnamed)
    keys = [part.key for part in parts]
    chosen = keys[index]
    tabs = f"lesson.part.{entry.url}"
    state.show(tabs, chosen)
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
    """The fields to add to a change of the view, so that its link opens the part that is on the screen."""
    shown = "" if state.view().part else st.session_state.get(_UNNAMED, "")
    return {"part": shown} if shown else {}


def go_to(part: str) -> None:
    """Shows another part of the lesson; for callbacks."""
    state.update(part=part)


@laboratory
def _part(entry: Entry, part: Shown, subject: Subject) -> None:
    """A sentence, the laboratory and one line of tabs; what else is said and asked on its right, or below it.

    It is below it where the laboratory is wide or the page is narrow.
    """
    words, formulas = prose(entry.url, part.key), list[Formula]()
    with st.container(key="lesson-wide" if part.wide else "lesson-part"):
        left, right = (st.container(), None) if part.wide else st.columns([2, 1], gap="medium")
        with left:
            lead = st.container(key="lesson-lead", horizontal=True, vertical_alignment="center")
            lead.markdown(words.lead)
            picture, tabs = st.container(key="lesson-laboratory"), st.container(key="lesson-tabs")
        if right is None:
            text, asked = st.columns(2, gap="medium")
            model = st.container(key="lesson-model")
        else:
            with right, st.container(key="lesson-words"):
                model, text, asked = st.container(), st.container(), st.container()
    text.markdown(words.rest)
    with picture, beside_others(asked), context_value.held(_formulas, formulas), context_value.held(_above, lead):
        part.draw(subject)
    with tabs:
        _tabs(words, formulas, key=f"lesson.tabs.{entry.url}.{part.key}")
    with model, beside_others(model):
        draw_beside(subject, entry.url, part.key)
    with asked:
        _ask_again(entry, part, subject)


def _tabs(words: Prose, formulas: Sequence["Formula"], *, key: str) -> None:
    """What there is to try, formulas, code, what is often got wrong: only that is made whose tab is open."""
    drawn: dict[str, Sequence[Callable[[], object]]] = {
        _("Try this"): [lambda: st.markdown("\n\n".join(words.tries))] * bool(words.tries),
        _("Formula"): [one.show for one in formulas if one.symbols],
        _("Code"): [one.show_code for one in formulas if one.code],
        _("Often got wrong"): [lambda: st.markdown("\n\n".join(words.wrongs))] * bool(words.wrongs),
    }
    titles = [title for title, draws in drawn.items() if draws]
    for title, tab in zip(titles, st.tabs(titles, key=key, on_change="rerun") if titles else (), strict=True):
        with tab:
            for draw in drawn[title] if is_open(tab) else ():
                draw()


def _ask_again(entry: Entry, part: Shown, subject: Subject) -> None:
    """One question that was answered wrongly in another part or on another day, in other words."""
    here = f"{entry.url}/{part.key}"
    where, chosen = st.session_state.get(_AGAIN, ("", None))
    waiting = [chosen] if where == here else [one for one in progress.due() if _is_of_another_part(one, entry, part)]
    for url, name, missed in waiting:
        if (found := questions.asked_again(url, name, missed, subject)) is not None:
            st.session_state[_AGAIN] = here, (url, name, missed)
            title = next(translate(one.title) for one in COURSE if one.url == url)
            show_note("Once more, from the lesson “{title}”:", title=title)
            ask(found, here=True)
            return


def _is_of_another_part(question: tuple[str, str, int], entry: Entry, part: Shown) -> bool:
    lesson, name, __ = question
    return lesson != entry.url or name not in lesson_words.tables(lesson, SOURCE)[part.key].get("asks", ())


def _paper(entry: Entry, parts: Parts, subject: Subject | None) -> None:
    """All parts one below the other, to be printed."""
    with st.container(horizontal=True, key="paper-head", vertical_alignment="center"):
        st.button(_("← Back to the lesson"), on_click=presenting.end, key="paper-end")
        st.caption(_("All parts of the lesson. Print this page with Ctrl+P (⌘P)."), width="content")
    with st.container(key="paper", width=PAPER_WIDTH):
        for number, part in enumerate(parts, 1):
            words = prose(entry.url, part.key)
            st.subheader(f"{number} · {part.name}", anchor=False)
            st.markdown(words.text)
            if subject is not None:
                _printed(part, subject)
            slides.boxes(words)


@laboratory
def _printed(part: Shown, subject: Subject) -> None:
    with state.apart(part.key), st.container(key=f"lesson-laboratory-{part.key}"):
        picture, asked = st.container(), st.container()
        with picture, beside_others(asked):
            part.draw(subject)


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
    with folded(_("Terms of this lesson"), key="lesson.terms") as is_open:
        if is_open:
            glossary.entries(names)
            st.page_link(GLOSSARY.file, label=_("The whole glossary"))


def _course() -> None:
    """All lessons, and how many of their questions have been answered."""
    with folded(_("The course: what I have done"), key="lesson.course") as is_open:
        if not is_open:
            return
        for entry in COURSE:
            st.page_link(entry.file, label=progress.said(entry))
        show_note("Kept in this browser, nowhere else.")
        if st.button(_("Forget my progress"), on_click=progress.forget, key="lesson.forget"):
            st.rerun()  # the whole page: it is there that the browser is told


# --- what the laboratories are made of --------------------------------------------------------------------------------


def setting(name: str, default: Setting, options: Collection[Setting] | None = None) -> dict[str, Any]:
    """The arguments that bind a keyed widget to the setting "lesson.setting" of the link, which takes only `options`."""
    key, chosen = state.widget(f"setting.{name}"), value(name, default, options)
    # A slider with other ends is another widget to Streamlit, and begins where the key was last *assigned*, not where
    # the reader moved it: assigned again, then, though the key seems to have the value.
    ends, known = None if options is None else tuple(options), f"{key}.options"
    again = st.session_state.get(known) != ends or state.arrives(key)
    if again or key not in st.session_state or st.session_state[key] != chosen:
        st.session_state[key] = chosen
    st.session_state[known] = ends
    return {"key": key, "on_change": _take, "args": (name, key, default, options), "persist_state": "session"}


def value(name: str, default: Setting, options: Collection[Setting] | None = None) -> Setting:
    return link_settings.value(link_settings.read(state.view().settings).get(name), default, options)


def _take(name: str, key: str, default: Setting, options: Collection[Setting] | None = None) -> None:
    new = st.session_state[key]  # as in `state._take`: None, or an old option's label, keeps what was
    if isinstance(new, float):
        new = round(new, 9)  # a slider adds its steps up, and may come to 0.30000000000000004
    if options is not None and new not in options:
        return
    if isinstance(new, type(default)) or (isinstance(default, float) and isinstance(new, int)):
        change(name, new, default)


def change(name: str, new: Setting, default: Setting) -> None:
    """Sets a setting; for callbacks of other widgets."""
    written = link_settings.text(new)
    if link_settings.can_hold(name, written):
        settings = link_settings.changed(state.view().settings, name, None if new == default else written)
        state.update(settings=settings)


def ask(question: Question | None, *others: Question | None, here: bool = False, folded: bool = False) -> None:
    """Asks questions, each to be answered before the answer is shown; nothing where the text has none to offer.

    They stand with the words of the part, or, where they are the picture itself, `here`.  Where the picture shows the
    answers they are `folded` into the line of its sentence; in a class they are unfolded, and on paper written out.
    """
    asked = [one for one in (question, *others) if one is not None]
    if folded and asked and not presenting.is_printed():
        in_class = any(class_question.part_of(one.lesson, one.name) != "nobody" for one in asked)
        label = _("Before you look: a question") if len(asked) == 1 else _("Before you look: some questions")
        above = None if in_class else _above.get()
        with st.expander(label, expanded=in_class) if above is None else above.popover(label, type="tertiary"):
            ask(*asked, here=True)
        return
    with nullcontext() if here or folded else place_beside():
        for one in asked:
            match one:
                case Choice():
                    questions.ask(one)
                case Number() if math.isfinite(one.answer):  # (not so after an edit that overflows)
                    questions.ask_number(one)
                case CellChoice():
                    ask_cell(one)


@dataclass(frozen=True)
class Formula:
    """A formula in symbols, with the numbers on the screen in it (`live`), and the PyTorch lines that compute it."""

    symbols: str
    live: str
    code: str
    given: Mapping[str, Given]

    def show(self) -> None:
        st.latex(self.symbols)
        if self.live:
            st.latex(re.sub(r"(?<!\\)\bnan\b", r"\\text{NaN}", re.sub(r"(?<!\\)\binf\b", r"\\infty", self.live)))

    def show_code(self) -> None:
        st.code(pasteable(self.code, self.given), language="python", wrap_lines=True)


def formula(symbols: str = "", *, live: str = "", code: str = "", given: Mapping[str, Given] | None = None) -> None:
    """Puts a formula and its code into the tabs below the part; on paper they stand here, on a slide without the code.

    `given` are the numbers that the code reads, by name: those that are short are written out before it.
    """
    made, kept = Formula(symbols, live, code, given or {}), _formulas.get()
    if kept is not None:
        kept.append(made)
        return
    if symbols:
        made.show()
    if code and not presenting.is_on():
        made.show_code()


def pasteable(code: str, given: Mapping[str, Given]) -> str:
    """Code with what it imports and the numbers that it reads."""
    return standalone(code, given).text(_("torch.randn replaces tables that are too long to write out"))
