"""A laboratory of the lesson Training: overfitting with dropout and without, and the loss of one text pass by pass."""

from typing import Any

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.analysis.training import gradient
from vizformer.components import table
from vizformer.components.table import Row, numbers
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.training.predictions import (
    affordable,
    hidden_now,
    losses,
    notes,
    paper_table,
    prediction,
    predicts,
)
from vizformer.web.widgets import chart, lesson
from vizformer.web.widgets.lab import Laboratory, controls, wrong_line
from vizformer.web.words.i18n import Markup

lab = Laboratory("training", "dropout")
RATES = (0.0, 0.1, 0.3)
PASSES = 4  # over the text
PAPER = ((0.0, 5.77, 24.6), (0.1, 4.92, 25.8), (0.2, 4.95, 25.5))  # dropout, perplexity, BLEU: Table 3, row D and base


def training_run(p: float) -> dict[str, Any]:
    """The bundled training with p (`recipes.overfitting`): its losses on the text that it reads and on held-out text."""
    found: dict[str, Any] = next(run for run in notes("overfitting")["runs"] if run["p"] == p)
    return found


@cached
def training_losses(subject: Subject, hidden: int | None, p: float, seed: int) -> np.ndarray:
    """The mean loss of the text in several passes with dropout."""
    asked = losses(subject, hidden).asked
    rows, right = [one.row for one in asked], [one.right.id for one in asked]
    model, trace = subject.checkpoint.model, prediction(subject, hidden)
    return gradient.training_losses(model, trace, rows, right, p, seed, PASSES)


@lab.draws
def draw_dropout(subject: Subject) -> None:
    measured, names = notes("overfitting"), lab.texts("curve", ("read", "held_out"))
    with controls():
        p = lab.steps("p", RATES, 0.0)
    lesson.ask(overfits(subject), folded=True)
    run, updates, letters = training_run(p), measured["updates"], f"{measured['recipe']['letters']:,}"
    chart.show(
        figures.line_curves(
            np.array(updates),
            {names[name]: np.array(run[name]) for name in names},
            place_title=lab.text("curve.update"),
            value_title=lab.text("curve.loss"),
            hover=lab.text("hover"),
            value_range=(0.0, max(max(one["held_out"]) for one in measured["runs"])),
            title=lab.text("curves", letters=letters, p=p),
        ),
        key="training.overfitting",
    )
    best = int(np.argmin(run["held_out"]))
    ends = {"lowest": run["held_out"][best], "last": run["held_out"][-1], "read": run["read"][-1]}
    lab.note(
        "lowest", p=p, update=updates[best], command=Markup("`python -m recipes.overfitting overfitting.json`"), **ends
    )
    lesson.formula(
        r"y_m = \frac{b_m}{1 - p}\, f(x)_m, \qquad P(b_m = 0) = p, \quad P(b_m = 1) = 1 - p",
        live=rf"\frac{{1}}{{1 - {p:g}}} = {1 / (1 - p):.4f}",
        code=f"p, f = {p}, torch.randn(8)\n"
        "b = (torch.rand(f.shape) >= p).float()\n"
        "added = f * b / (1 - p)  # as torch.nn.Dropout(p) in training; in use f itself",
    )
    _yours(subject, p)
    st.markdown(lab.text("good"))
    st.html(paper_table(lab, "p", PAPER))
    lesson.ask(line(subject), folded=True)


@lab.asks("overfits")
def overfits(subject: Subject) -> lesson.Choice:
    run, updates = training_run(0.0), notes("overfitting")["updates"]
    best, last = int(np.argmin(run["held_out"])), len(updates) - 1
    asked = sorted({best // 3, best, (best + last) // 2, last})
    values = {
        "best": updates[best],
        "lowest": f"{run['held_out'][best]:.2f}",
        "last": f"{run['held_out'][-1]:.2f}",
        "letters": f"{notes('overfitting')['recipe']['letters']:,}",
    }
    wrong = [
        lab.mistake(
            "overfits",
            "early" if at < best else "late",
            index,
            update=updates[at],
            own=f"{run['held_out'][at]:.2f}",
            **values,
        )
        for index, at in enumerate(asked)
        if at != best
    ]
    choices = [lab.text("asks.overfits.choices.one", update=updates[at]) for at in asked]
    return lesson.Choice(choices=choices, answer=asked.index(best), **lab.asked("overfits", wrong=wrong, **values))


@lab.asks("reported")
def reported(subject: Subject) -> lesson.Choice:
    return lab.choice("reported", ("mistake", "dropout", "heart"), "dropout")


@lab.asks("line")
def line(subject: Subject) -> lesson.Choice:
    return wrong_line(lab, "dropout")


def _yours(subject: Subject, p: float) -> None:
    """The loss of the reader's text in several passes with dropout, beside the one in use."""
    lesson.ask(reported(subject))
    if not predicts(subject):
        return
    if not affordable(subject):
        st.info(lab.text("large"))
        return
    seed = lesson.value("training.seed", 0, range(1000))
    drawn = ("training.seed", (seed + 1) % 1000, 0)
    st.button(lab.text("again"), on_click=lesson.change, args=drawn, key="training.again")
    hidden = hidden_now(subject)
    mean, passes = losses(subject, hidden).mean, training_losses(subject, hidden, p, seed)
    rows = [
        Row(lab.text("used"), *numbers(".4f", mean), kind="marked"),
        *(Row(lab.text("pass", n=n), *numbers(".4f", one)) for n, one in enumerate(passes, 1)),
        Row(lab.text("mean"), *numbers(".4f", passes.mean()), kind="sum"),
    ]
    st.html(table.style() + table.to_html(("", lab.text("loss")), rows, caption=lab.text("yours")))
