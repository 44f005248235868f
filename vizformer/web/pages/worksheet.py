"""The page Worksheet: calculations with the tokens of the sentence, the questions of the lessons, and the key."""

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

import numpy as np
import streamlit as st

from vizformer.components import matrix
from vizformer.errors import VizformerError
from vizformer.explain.paper_calculations import SEEDS, Problem, Table, choice_order, worksheet
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame.sitemap import COURSE, titled
from vizformer.web.link import state
from vizformer.web.widgets import lesson
from vizformer.web.widgets.choices import more
from vizformer.web.widgets.laboratories import laboratory
from vizformer.web.widgets.misconceptions import Grid
from vizformer.web.widgets.questions import CellChoice, Choice, Number, Question, Registry
from vizformer.web.words import labels
from vizformer.web.words.errors import plain
from vizformer.web.words.i18n import _, show_note, translate

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
BLANK = '<div class="vf-paper-blank"></div>'


def style() -> str:
    """The style sheet: what is on the screen, and how it comes onto paper."""
    return f"<style>{Path(__file__).with_suffix('.css').read_text(encoding='utf-8')}</style>"


def name_line(*fields: str) -> str:
    """Lines on which whoever fills in the sheet writes a name."""
    return '<div class="vf-paper-name">' + "".join(f"<span>{escape(field)}</span>" for field in fields) + "</div>"


def printed_problem(number: int, one: Problem, title: str) -> None:
    st.markdown(f"**{number}.** {translate(one.text, plain)} *({title})*")
    with st.container(horizontal=True, gap="medium"):
        st.latex(one.formula, width="content")
        for given in one.given:
            st.html(_table(given), width="content")
    st.html(BLANK)


def problem_answer(number: int, one: Problem) -> None:
    """The answer to a calculation, and how its first number comes about."""
    st.markdown(f"**{number}.** {translate(one.text, plain)}")
    for answered in one.answer:
        st.html(_table(answered))
    st.latex(one.working)


def printed_question(number: int, asked: Question, title: str, seed: int) -> None:
    """A question of a lesson: its choices in the version's order, a line for a number, or a table to be marked."""
    st.markdown(f"**{number}.** {plain(asked.question)} *({title})*")
    match asked:
        case Choice(code=True):
            lines = "".join(f"<li>{escape(line)}</li>" for line in asked.choices)
            st.html(f'<ol class="vf-paper-code">{lines}</ol>')
        case Choice():
            ordered = [asked.choices[index] for index in order(asked, seed)]
            st.html('<ol class="vf-paper-choices">' + "".join(f"<li>{escape(one)}</li>" for one in ordered) + "</ol>")
        case Number():
            st.html(f'<div class="vf-paper-number"><span></span>{escape(_near(asked))}</div>')
        case CellChoice():
            show_note("Mark the right cell.")
            st.html(_empty(asked.grid))


def answer(number: int, asked: Question, seed: int) -> None:
    said = asked.said
    if isinstance(asked, Choice) and not asked.code:
        said = f"{LETTERS[order(asked, seed).index(asked.answer)]} · {said}"
    elif isinstance(asked, Number) and asked.tolerance:
        said = f"{said} (± {asked.tolerance:g})"
    elif isinstance(asked, CellChoice):
        row, column = asked.answer
        said = _(
            "row {row}, column {column}",
            row=_numbered(asked.grid.rows)[row],
            column=_numbered(asked.grid.columns)[column],
        )
    st.markdown(f"**{number}.** **{plain(said)}**　{plain(asked.why)}")


def order(asked: Choice, seed: int) -> Sequence[int]:
    """The order in which a version prints the choices; the lines of a program stay where they are."""
    if asked.code:
        return range(len(asked.choices))
    return choice_order(f"{asked.lesson}/{asked.name}", len(asked.choices), seed)


def _near(asked: Number) -> str:
    return _("(right within ± {tolerance})", tolerance=f"{asked.tolerance:g}") if asked.tolerance else _("(exact)")


def _empty(grid: Grid) -> str:
    """The picture of the lesson as a table without numbers."""
    head = "".join(f"<th><span>{escape(text)}</span></th>" for text in _numbered(grid.columns))
    cells = "<td></td>" * len(grid.columns)
    rows = "".join(f"<tr><th>{escape(text)}</th>{cells}</tr>" for text in _numbered(grid.rows))
    return f'<table class="vf-paper-cells"><thead><tr><th></th>{head}</tr></thead><tbody>{rows}</tbody></table>'


def _numbered(texts: Sequence[str]) -> list[str]:
    """Labels with their places: they may repeat."""
    return [f"{place} · {text}" for place, text in enumerate(texts)]


def _table(table: Table) -> str:
    value = np.round(table.value, table.digits) + 0.0  # (never −0.00): as many digits as were asked for
    rows = table.rows if table.rows and value.ndim == 2 else None
    return matrix.to_html(value, rows=rows, caption=table.symbol, digits=table.digits)


# A worksheet for paper: calculations with the tokens of the sentence, the questions of the lessons, and the key.

IN_LINKS = (
    "map",
    "tokens",
    "positions",
    "qkv",
    "heads",
    "masks",
    "block",
    "cross",
    "decoding",
    "training",
    "costs",
    "errors",  # a lesson of before
    "mixers",
)
"""A link names a lesson by its place here, from 1: that of before, whatever the order of the course becomes."""
USUAL = "4"  # the lessons whose questions are printed; "0": none
_LESSONS = "worksheet.chosen"


@laboratory
def draw_sheet(subject: Subject, registries: Mapping[str, Registry]) -> None:
    """The sheet, and the key on a page of its own where it is asked for."""
    st.html(matrix.style() + style())
    with st.container(key="worksheet-settings", horizontal=True, vertical_alignment="bottom"):
        seed = st.number_input(
            _("Version"),
            SEEDS[0],
            SEEDS[-1],
            step=1,
            width=200,
            label_visibility="collapsed",
            **lesson.setting("worksheet.seed", SEEDS[0], SEEDS),
        )
        key = st.toggle(_("Show the answers"), **lesson.setting("worksheet.key", False))
        calculations = st.toggle(_("Calculations"), **lesson.setting("worksheet.calculations", True))
        with more():
            chosen = _lessons()
            show_note(
                "Another version has other numbers in its calculations, and another order of choices. "
                "Print with the browser: only the sheet is printed, and the answers, if they are shown, "
                "on a separate page."
            )
    tokens = [token.text for token in subject.tokens if not token.special] or labels.texts(subject.tokens)
    problems = worksheet(tokens, int(seed)) if calculations else ()
    asked, left_out = _questions(subject, {url: registries[url] for url in chosen})
    if left_out:
        with st.container(key="worksheet-settings-left-out"):
            show_note("Questions omitted, as they do not fit this model or this sentence: {n}.", n=left_out)
    heading = _("**Worksheet, version {seed}** · “{text}”", seed=seed, text=plain(subject.text))
    with st.container(horizontal=True, vertical_alignment="bottom", key="worksheet-head"):
        st.markdown(heading, width="content")
        st.html(name_line(_("Name"), _("Date")))
    titles = {entry.url: titled(entry) for entry in COURSE}
    for number, problem in enumerate(problems, 1):
        with st.container(key=f"worksheet-problem-{problem.key}"):
            printed_problem(number, problem, titles[problem.lesson])
    for number, one in enumerate(asked, len(problems) + 1):
        with st.container(key=f"worksheet-problem-{one.lesson}-{one.name}"):
            printed_question(number, one, titles[one.lesson], int(seed))
    if key:
        with st.container(key="worksheet-key"):
            _key(heading, problems, asked, int(seed))


def _key(heading: str, problems: tuple[Problem, ...], asked: list[Question], seed: int) -> None:
    st.markdown(heading + " · " + _("**the answers**"))
    if problems:
        show_note("The answers are computed without rounding: your last digit may differ.")
    for number, problem in enumerate(problems, 1):
        with st.container(key=f"worksheet-problem-{problem.key}-answer"):
            problem_answer(number, problem)
    for number, one in enumerate(asked, len(problems) + 1):
        with st.container(key=f"worksheet-problem-{one.lesson}-{one.name}-answer"):
            answer(number, one, seed)


def _questions(subject: Subject, registries: Mapping[str, Registry]) -> tuple[list[Question], int]:
    """The questions that the subject has an answer to, and how many others there are."""
    found: list[Question] = []
    count = 0
    for registry in registries.values():
        for asks in registry.values():
            count += 1
            try:
                one = asks(subject)
            except VizformerError:  # a model of somebody else's may lack what the question is about
                one = None
            if one is not None:
                found.append(one)
    return found, count - len(found)


def _lessons() -> list[str]:
    """The addresses of the lessons whose questions are printed."""
    written = str(lesson.value("worksheet.lessons", USUAL)).split(",")
    titles = {str(IN_LINKS.index(entry.url) + 1): titled(entry) for entry in COURSE}
    known = [number for number in titles if number in written]
    state.show(_LESSONS, known)
    st.pills(
        _("Questions of these lessons"),
        list(titles),
        selection_mode="multi",
        format_func=titles.__getitem__,
        key=_LESSONS,
        on_change=_take,
    )
    return [IN_LINKS[int(number) - 1] for number in known]


def _take() -> None:
    chosen = sorted(st.session_state[_LESSONS], key=int)
    lesson.change("worksheet.lessons", ",".join(chosen) or "0", USUAL)
