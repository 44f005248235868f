"""How the worksheet is printed: a calculation, a question of a lesson, and the answer to each."""

from collections.abc import Sequence
from html import escape
from pathlib import Path

import numpy as np
import streamlit as st

from vizformer.components import matrix
from vizformer.explain.paper_calculations import Problem, Table, choice_order
from vizformer.web.widgets.misconceptions import Grid
from vizformer.web.widgets.questions import CellChoice, Choice, Number, Question
from vizformer.web.words.errors import plain
from vizformer.web.words.i18n import _, show_note, translate

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
BLANK = '<div class="vf-paper-blank"></div>'


def style() -> str:
    """The style sheet: what is on the screen, and how it comes onto paper."""
    return f"<style>{(Path(__file__).parent / 'paper.css').read_text(encoding='utf-8')}</style>"


def name_line(*fields: str) -> str:
    """Lines on which whoever fills in the sheet writes a name."""
    return '<div class="vf-paper-name">' + "".join(f"<span>{escape(field)}</span>" for field in fields) + "</div>"


def problem(number: int, one: Problem, title: str) -> None:
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


def question(number: int, asked: Question, title: str, seed: int) -> None:
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
