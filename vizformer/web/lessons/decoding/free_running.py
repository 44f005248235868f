"""The laboratory Teacher forcing and exposure bias: one error under teacher forcing, and running free."""

from itertools import zip_longest

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.analysis.decoding import teacher_forcing
from vizformer.analysis.decoding.teacher_forcing import LONGEST, ForcedRow, OneError
from vizformer.components import table
from vizformer.components.table import Number, Row
from vizformer.figures.figure import Figure
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.decoding.writing import say_unless_writes, writes
from vizformer.web.widgets import chart, lesson
from vizformer.web.widgets.lab import Laboratory, controls
from vizformer.web.words import counts

lab = Laboratory("decoding", "free")
MOST_WRONG = 3  # wrong tokens to choose from


@cached
def right_rows(subject: Subject) -> tuple[ForcedRow, ...]:
    return teacher_forcing.right_rows(subject.checkpoint, subject.text, subject.trace)


@cached
def one_error(subject: Subject, step: int, rank: int) -> OneError:
    return teacher_forcing.one_error(subject.checkpoint, subject.text, right_rows(subject), step, rank)


@lab.draws
def draw_free_running(subject: Subject) -> None:
    if not say_unless_writes(lab, subject):
        return
    rows = right_rows(subject)
    last = len(rows) - 1
    with controls():
        step = min(lab.slider("step", 0, max(last, 1), min(1, last)), last)
        rank = lab.slider("rank", 1, MOST_WRONG, 1)
    found = one_error(subject, step, rank - 1)
    chart.show(_chances(found), key="decoding.free")
    lesson.ask(forcing(subject, step))
    free = [token.text for token in found.free]
    cells = zip_longest(
        [row.wanted.text for row in rows],
        [row.read.text for row in rows],
        [found.wrong.text if i == step else row.best[0].token.text for i, row in enumerate(rows)],
        [rows[0].read.text, *free][: max(len(rows), len(free))],
        free,
        fillvalue="",
    )
    same = {i for i, (row, own) in enumerate(zip(rows, found.free, strict=False)) if row.wanted.id == own.id}
    shown = [Row(Number(i, str(i)), *texts, kind="" if i in same else "marked") for i, texts in enumerate(cells)]
    columns = lab.columns("token", "right", "reads", "says", "reads_free", "says_free")
    st.html(table.style() + table.to_html(columns, shown))
    lab.say("becomes", text=found.whole or lab.text("nothing"))
    lab.note("after", step=step, wrong=found.wrong.text, changed=counts.tokens(found.changed))
    if len(rows) == LONGEST:
        lab.note("first", n=LONGEST)
    lesson.formula(
        r"\text{forced: } P(y_t \mid y_1, \dots, y_{t-1}, x) \qquad "
        r"\text{free: } P(\hat y_t \mid \hat y_1, \dots, \hat y_{t-1}, x)",
        code="right = torch.tensor(y)            # teacher forcing: input and target are the same text\n"
        "inputs, targets = right[:-1], right[1:]",
        given={"y": [row.read.id for row in rows] + [rows[-1].wanted.id]},
    )


def _chances(found: OneError) -> Figure:
    """P(correct token) at each step: after the correct tokens, and after those that the model has written itself."""
    values = {"forced": [row.probability for row in found.rows], "free": found.chances}
    places, names = np.arange(len(found.rows)), lab.texts("curve", ("forced", "free"))
    return figures.line_curves(
        places,
        {names[name]: np.array(chances, dtype=np.float32) for name, chances in values.items()},
        place_title=lab.text("columns.token"),
        value_title=lab.text("curve.value"),
        hover=lab.text("curve.hover"),
        mark=(found.step, lab.text("curve.wrong", wrong=found.wrong.text)),
        value_range=(0.0, 1.05),
        title=lab.text("curve.title"),
    ).update_traces(mode="lines+markers")


@lab.asks("forcing")
def forcing(subject: Subject, step: int = 1) -> lesson.Choice | None:
    if not writes(subject):
        return None
    last = len(right_rows(subject)) - 1
    step = min(step, last)
    return lab.choice("forcing", ("none", "one", "all"), "none", subject, step, step=step, later=max(last - step, 2))
