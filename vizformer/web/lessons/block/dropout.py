"""A laboratory of the lesson Add & norm, feed-forward: one row with dropout and without, one sentence answered often."""

import numpy as np
import streamlit as st

from vizformer.analysis.training import dropout
from vizformer.analysis.training.dropout import Dropped
from vizformer.components import matrix, table
from vizformer.components.table import Row
from vizformer.explain import latex
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.catalogue.subject_functions import of_run
from vizformer.web.lessons.block.place import affordable, block_stream, choose
from vizformer.web.widgets import lesson
from vizformer.web.widgets.lab import Laboratory, aside
from vizformer.web.words.cells import share

lab = Laboratory("block", "dropout")
RATES = (0.0, 0.1, 0.2, 0.3, 0.5, 0.8)
SHOWN = 8  # columns of the row
RUNS = 6  # rows of the table of answers


@cached
def dropped(subject: Subject, stack: str, layer: int, row: int, p: float, seed: int) -> Dropped:
    return dropout.drop(block_stream(subject, stack, layer, row).attention_added, p, seed)


training_answers = of_run(dropout.training_answers)


@lab.draws
def draw(subject: Subject) -> None:
    st.html(table.style() + matrix.style())
    place, below = choose(lab, subject)
    p = lab.steps("p", RATES, 0.3)
    training = lab.buttons("mode", ("train", "eval")) == "train"
    seed = lesson.value("block.seed", 0, range(1000))
    st.button(lab.text("again"), on_click=lesson.change, args=("block.seed", (seed + 1) % 1000, 0), key="block.again")
    here = p if training else 0.0
    found = dropped(subject, *place, here, seed)
    rows = {
        "f(x)": found.row,
        lab.text("rows.kept"): found.kept.astype(np.float64),
        lab.text("rows.added"): found.result,
    }
    caption = lab.text("row", layer=place.layer, token=subject.trace.tokens[place.stack][place.row].text)
    lines = np.stack(list(rows.values()))
    st.html(matrix.to_html(lines, rows=list(rows), caption=caption, shown=SHOWN, digits=3))
    aside(below)
    means = {"before": matrix.number(found.mean_before), "after": matrix.number(found.mean_after)}
    lab.say("kept", kept=int(found.kept.sum()), d=len(found.row), **means)
    first = int(found.kept.argmax())
    lesson.formula(
        r"y_m = \frac{b_m}{1 - p}\, f(x)_m, \qquad P(b_m = 0) = p, \quad P(b_m = 1) = 1 - p",
        live=rf"y_{{{first}}} = \frac{{1}}{{1 - {here:g}}} \cdot {latex.factor(found.row[first])} "
        rf"= {found.result[first]:.4f}",
        code=f"p, training = {p}, {training}\n"
        "b = (torch.rand(f.shape) >= p).float()\n"
        "added = f * b / (1 - p) if training else f  # as torch.nn.Dropout(p)",
        given={"f": found.row},
    )
    st.markdown(lab.text("where"))
    st.markdown(lab.text("acts"))
    lab.note("paper", p=subject.config.dropout)
    lesson.ask(question(subject))
    _answers(subject, p, seed)


@lab.asks("scale")
def question(subject: Subject) -> lesson.Choice:
    return lab.choice("scale", ("size", "gradient", "back"), "size")


def _answers(subject: Subject, p: float, seed: int) -> None:
    st.markdown(lab.text("several"))
    if not model_cache.predicts(subject.model) or not affordable(subject.model):
        lab.note("none")
        return
    found = training_answers(subject.unedited, p, seed)
    token = subject.checkpoint.tokenizer.tokens([found.token])[0].text
    at = subject.trace.tokens["decoder" if "decoder" in subject.trace.tokens else "encoder"][found.position].text
    runs = [Row(lab.text("run", n=run), share(value)) for run, value in enumerate(found.training[:RUNS], 1)]
    rows = [Row(lab.text("mode.eval"), share(found.probability), kind="marked"), *runs]
    columns = ("", lab.text("probability", token=token, row=found.position, at=at))
    st.html(table.to_html(columns, rows, bar=1))
    lab.say("agree", agree=found.agree, runs=len(found.training), p=p, token=token)
