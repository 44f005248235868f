"""The laboratory Shifted right: what each row reads, what it is trained to say, and the loss of the text."""

import math

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.analysis import AnswerCell, answer_cell
from vizformer.analysis.decoding import teacher_forcing
from vizformer.components import table
from vizformer.components.table import Number, Row
from vizformer.explain import latex
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.catalogue.subject_functions import of_run
from vizformer.web.lessons.decoding.writing import say_unless_writes, writes
from vizformer.web.widgets import chart, lesson
from vizformer.web.widgets.cell_question import LARGEST
from vizformer.web.widgets.lab import Laboratory
from vizformer.web.words import labels
from vizformer.web.words.labels import share

lab = Laboratory("decoding", "shift")
SHOWN, DRAWN = 40, 12  # rows of the table, and of the picture


forced_rows = of_run(teacher_forcing.forced_rows)


@cached
def own_answer(subject: Subject) -> AnswerCell | None:
    """The cell in which a decoder row would read the very token that it has to predict."""
    return answer_cell(subject.trace, LARGEST)


@lab.draws
def draw_shifted_target(subject: Subject) -> None:
    if not say_unless_writes(lab, subject):
        return
    rows = forced_rows(subject)
    if not rows:
        st.info(lab.text("single"))
        return
    lesson.ask(next_token(subject), folded=True)
    drawn = rows[:DRAWN]
    names, shares = [f"{row.read.text} → {row.wanted.text}" for row in drawn], [row.probability for row in drawn]
    picture = figures.next_token_bars(names, np.array(shares), title=lab.text("columns.probability"))
    chart.show(picture, key="decoding.shift")
    shown = [
        Row(
            Number(i, str(i)),
            row.read.text,
            row.wanted.text,
            share(row.probability),
            row.loss,
            row.best[0].token.text,
            kind="" if row.is_right else "marked",
        )
        for i, row in enumerate(rows[:SHOWN])
    ]
    columns = lab.columns("row", "reads", "next", "probability", "loss", "choice")
    st.html(table.style() + table.to_html(columns, shown, bar=3))
    if len(rows) > SHOWN:
        lab.note("first", shown=SHOWN, n=len(rows))
    lab.note("rows", n=len(rows), wrong=sum(not row.is_right for row in rows))
    lesson.ask(blocked(subject))
    total = math.fsum(row.loss for row in rows)
    lesson.formula(
        r"L = -\sum_{t=1}^{n} \log P(y_t \mid y_{<t}, x) \qquad \text{perplexity} = e^{L/n}",
        live=rf"L = {latex.number(total)} \qquad e^{{{latex.number(total)}/{len(rows)}}} = "
        f"{math.exp(total / len(rows)):.4f}",
        code="loss = -torch.log(p).sum()\nperplexity = torch.exp(loss / len(p))",
        given={"p": np.array([row.probability for row in rows])},
    )


@lab.asks("shift")
def next_token(subject: Subject) -> lesson.Choice | None:
    rows = forced_rows(subject) if writes(subject) else ()
    if not rows:
        return None
    other = own_answer(subject)
    told = None if other is None else other.query  # by the question after this one
    at = next((i for i in (1, 2) if i < len(rows) and i != told), 0)
    read, wanted = rows[at].read.text, rows[at].wanted.text
    choices = list(dict.fromkeys([read, wanted, *(row.wanted.text for row in rows), "</s>"]))[:3]
    wrong = {
        "same" if choice == read else "end" if choice == "</s>" else "later": index
        for index, choice in enumerate(choices)
        if choice != wanted
    }
    said = lab.asked("shift", subject, wrong=wrong, row=at, token=read)
    return lesson.Choice(choices=choices, answer=choices.index(wanted), **said)


@lab.asks("answer")
def blocked(subject: Subject) -> lesson.CellChoice | None:
    found = own_answer(subject) if writes(subject) else None
    if found is None:  # one token: its answer is no input
        return None
    tokens, (row, column) = labels.texts(subject.trace.tokens["decoder"][:LARGEST]), (found.query, found.key)
    weight = f"{found.weights[row, column]:g}"
    said = lab.asked("answer", subject, row=row, token=tokens[row], wanted=tokens[column], weight=weight)
    return lesson.CellChoice(grid=lesson.Grid(tokens, tokens, found.weights), answer=(row, column), **said)
