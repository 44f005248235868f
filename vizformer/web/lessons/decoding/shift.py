"""The laboratory Shifted by one: what each row reads, what it is trained to say, and the loss of the text."""

import math

import numpy as np
import streamlit as st

from vizformer.components import table
from vizformer.components.table import Number, Row
from vizformer.explain import latex
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.decoding import computations
from vizformer.web.lessons.decoding.other_model import writes
from vizformer.web.widgets import lesson
from vizformer.web.widgets.cell_question import LARGEST
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words import labels
from vizformer.web.words.i18n import _

SHOWN = 40  # rows


@laboratory
def shift(subject: Subject) -> None:
    """Each row with the token that it reads and the one that is right after it, and the sum of the losses."""
    if not writes(subject):
        return
    st.html(table.style())
    rows = computations.forced_rows(subject)
    if not rows:
        st.info(_("This text has one token only, so nothing follows it. Type one more word."))
        return
    lesson.ask(shift_question(subject), folded=True)
    columns = (_("row"), _("reads"), _("correct next token"), _("its probability"), _("−log P"), _("model's choice"))
    shown = [
        Row(
            (
                Number(i, str(i)),
                row.read.text,
                row.wanted.text,
                Number(row.probability, labels.percent(row.probability)),
                row.loss,
                row.best[0].token.text,
            ),
            "" if row.is_right else "marked",
        )
        for i, row in enumerate(rows[:SHOWN])
    ]
    st.html(table.to_html(columns, shown, bar=3))
    if len(rows) > SHOWN:
        st.caption(_("The first {shown} of {n} rows; the sum is over all.", shown=SHOWN, n=len(rows)))
    st.caption(
        _(
            "{n} rows, computed in one forward. Framed: where the model itself would say something else ({wrong}). Compare "
            "the columns: the input is the target shifted right by one place, with a start mark in front.",
            n=len(rows),
            wrong=sum(not row.is_right for row in rows),
        )
    )
    lesson.ask(answer_question(subject))
    total = math.fsum(row.loss for row in rows)
    lesson.formula(
        r"L = -\sum_{t=1}^{n} \log P(y_t \mid y_{<t}, x) \qquad \text{perplexity} = e^{L/n}",
        live=rf"L = {latex.number(total)} \qquad e^{{{latex.number(total)}/{len(rows)}}} = "
        f"{math.exp(total / len(rows)):.4f}",
        code="loss = -torch.log(p).sum()\nperplexity = torch.exp(loss / len(p))",
        given={"p": np.array([row.probability for row in rows])},
    )


def shift_question(subject: Subject) -> lesson.Choice:
    rows, other = computations.forced_rows(subject), computations.answer_cell(subject, LARGEST)
    told = None if other is None else other.query  # by the question after this one
    at = next((i for i in (1, 2) if i < len(rows) and i != told), 0)
    row, others = rows[at], [*(other.wanted.text for other in rows), "</s>"]
    choices = list(dict.fromkeys([row.read.text, row.wanted.text, *others]))[:3]
    return lesson.Choice(
        "decoding",
        "shift",
        _("Row {row} reads “{token}”. Which token is it trained to say?", row=at, token=row.read.text),
        choices,
        choices.index(row.wanted.text),
        _("The next one of the same text: input and target are one text, shifted by one place."),
        about=f"{subject}",
    )


def answer_question(subject: Subject) -> lesson.CellChoice | None:
    """In which cell would a row read its own answer?"""
    asked = computations.answer_cell(subject, LARGEST)
    if asked is None:  # one token: its answer is no input
        return None
    tokens = labels.texts(subject.trace.tokens["decoder"][:LARGEST])
    return lesson.CellChoice(
        "decoding",
        "answer",
        _(
            "All rows are computed at once, so the whole text goes in. The correct next token of row {row}, “{token}”, is "
            "“{wanted}”. Which cell of the self-attention must be blocked, so that the row cannot simply read its answer?",
            row=asked.query,
            token=tokens[asked.query],
            wanted=tokens[asked.key],
        ),
        lesson.Grid(tokens, tokens, asked.weights),
        (asked.query, asked.key),
        _(
            "The row of “{token}”, the column of “{wanted}”, which stands one place further on. The causal mask blocks it "
            "with all the rest of the future: its weight is {weight}. (The numbers are those of layer 0, averaged over "
            "the heads.)",
            token=tokens[asked.query],
            wanted=tokens[asked.key],
            weight=f"{asked.weights[asked.query, asked.key]:g}",
        ),
        about=f"{subject}",
    )
