"""A worksheet for paper: calculations with the tokens of the sentence, and the key."""

from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from vizformer.components import matrix
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame.sitemap import COURSE
from vizformer.web.widgets import lesson
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words import labels
from vizformer.web.words.errors import plain
from vizformer.web.words.i18n import _, translate

if TYPE_CHECKING:
    from vizformer.explain.worksheet import Problem, Table

# On paper: the sheet alone, in black on white, no question cut in two.
_PRINT = """<style>@media print {
[data-testid=stSidebar], [data-testid=stHeader], [class*=st-key-bar], .st-key-worksheet-settings { display: none !important }
.stApp, [data-testid=stAppViewContainer], [data-testid=stMain] { position: static !important; overflow: visible !important;
height: auto !important }
[class*=st-key-worksheet-problem-] { break-inside: avoid }
}</style>"""


@laboratory
def sheet(subject: Subject) -> None:
    """The questions with their numbers, and where it is asked for the key."""
    from vizformer.explain.worksheet import SEEDS, worksheet

    st.html(_PRINT + matrix.style())
    with st.container(key="worksheet-settings"):
        left, right = st.columns([1, 2], vertical_alignment="bottom")
        seed = left.number_input(
            _("Version"), SEEDS[0], SEEDS[-1], step=1, **lesson.setting("worksheet.seed", SEEDS[0], SEEDS)
        )
        key = right.toggle(_("Show the answers"), **lesson.setting("worksheet.key", False))
        st.caption(
            _("Another version has other numbers. Print with the browser: the sheet alone comes onto the paper.")
        )
    st.markdown(_("**Worksheet, version {seed}** · “{text}”", seed=seed, text=plain(subject.text)))
    if key:
        st.caption(
            _("The answers are worked out with numbers that are not rounded: your last digit may be another one.")
        )
    tokens = [token.text for token in subject.tokens if not token.special] or labels.texts(subject.tokens)
    for number, problem in enumerate(worksheet(tokens, int(seed)), 1):
        with st.container(key=f"worksheet-problem-{problem.key}"):
            _problem(number, problem, key=key)


def _problem(number: int, problem: "Problem", *, key: bool) -> None:
    titles = {entry.url: translate(entry.title) for entry in COURSE}
    st.markdown(f"**{number}.** {translate(problem.text, plain)} *({titles[problem.lesson]})*")
    st.latex(problem.formula)
    for table in problem.given:
        st.html(_table(table))
    if key:
        for table in problem.answer:
            st.html(_table(table))
        st.latex(problem.working)
    else:
        st.html('<div style="height: 4.5rem; border-bottom: 1px dotted gray"></div>')


def _table(table: "Table") -> str:
    value = np.asarray(table.value)
    rows = table.rows if table.rows and value.ndim == 2 else None
    return matrix.to_html(value, rows=rows, caption=table.symbol, digits=table.digits)
