"""A worksheet for paper: calculations with the tokens of the sentence, the questions of the lessons, and the key."""

from collections.abc import Mapping

import streamlit as st

from vizformer.components import matrix
from vizformer.errors import VizformerError
from vizformer.explain.paper_calculations import SEEDS, Problem, worksheet
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame.numbering import titled
from vizformer.web.frame.sitemap import COURSE
from vizformer.web.link import state
from vizformer.web.tools.worksheet import paper
from vizformer.web.widgets import lesson
from vizformer.web.widgets.choices import more
from vizformer.web.widgets.laboratories import laboratory
from vizformer.web.widgets.questions import Question, Registry
from vizformer.web.words import labels
from vizformer.web.words.errors import plain
from vizformer.web.words.i18n import _, show_note

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
    st.html(matrix.style() + paper.style())
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
        st.html(paper.name_line(_("Name"), _("Date")))
    titles = {entry.url: titled(entry) for entry in COURSE}
    for number, problem in enumerate(problems, 1):
        with st.container(key=f"worksheet-problem-{problem.key}"):
            paper.problem(number, problem, titles[problem.lesson])
    for number, one in enumerate(asked, len(problems) + 1):
        with st.container(key=f"worksheet-problem-{one.lesson}-{one.name}"):
            paper.question(number, one, titles[one.lesson], int(seed))
    if key:
        with st.container(key="worksheet-key"):
            _key(heading, problems, asked, int(seed))


def _key(heading: str, problems: tuple[Problem, ...], asked: list[Question], seed: int) -> None:
    st.markdown(heading + " · " + _("**the answers**"))
    if problems:
        show_note("The answers are computed without rounding: your last digit may differ.")
    for number, problem in enumerate(problems, 1):
        with st.container(key=f"worksheet-problem-{problem.key}-answer"):
            paper.problem_answer(number, problem)
    for number, one in enumerate(asked, len(problems) + 1):
        with st.container(key=f"worksheet-problem-{one.lesson}-{one.name}-answer"):
            paper.answer(number, one, seed)


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
