"""A laboratory of the lesson Training: the last checkpoints of a training, and the mean of their weights."""

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.analysis.training import small_trainings
from vizformer.analysis.training.small_trainings import CHECKPOINTS_APART, Averaging
from vizformer.components import table
from vizformer.components.table import Row, numbers
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.training.measurements import notes
from vizformer.web.widgets import chart, lesson
from vizformer.web.widgets.lab import Laboratory, controls

lab = Laboratory("training", "average")
CODE = """last = [torch.nn.Linear(3, 2) for _ in range(5)]  # five checkpoints of one training
mean = torch.nn.Linear(3, 2)
states = [model.state_dict() for model in last]
mean.load_state_dict({name: torch.stack([state[name] for state in states]).mean(0) for name in states[0]})"""


@cached
def trainings() -> tuple[Averaging, ...]:
    return small_trainings.averaging(notes("smoothing"))


@lab.draws
def draw(subject: Subject) -> None:
    runs = trainings()
    names = [lab.text("name", eps=run.smoothing, seed=run.seed) for run in runs]
    with controls():
        chosen = lab.box("run", names, 0)
    run = runs[chosen]
    count = len(run.losses)
    lesson.ask(mean(subject), folded=True)
    chart.show(
        figures.line_curves(
            np.arange(1, count + 1),
            {lab.text("single"): np.array(run.losses), lab.text("mean"): np.full(count, run.mean_loss)},
            place_title=lab.text("checkpoint"),
            value_title=lab.text("loss"),
            hover=lab.text("hover"),
            height=340,
            title=lab.text("held", name=names[chosen]),
        ).update_traces(mode="lines+markers"),
        key="training.averaging",
    )
    rows = [
        Row(
            name,
            *numbers(".3f", one.losses[-1], one.mean_loss),
            *numbers(".1f", one.bleu, one.mean_bleu),
            kind="marked" if one is run else "",
        )
        for name, one in zip(names, runs, strict=True)
    ]
    columns = lab.columns("training", "last", "mean", "last_bleu", "mean_bleu")
    st.html(table.style() + table.to_html(columns, rows))
    lab.note("trainings", apart=CHECKPOINTS_APART)
    lesson.formula(
        r"\bar w = \tfrac{1}{k} \sum_{i=1}^{k} w_i",
        live=rf"k = {count}: \quad L(\bar w) = {run.mean_loss:.4f}, \qquad \tfrac1k \textstyle\sum_i L(w_i) = "
        rf"{float(np.mean(run.losses)):.4f}",
        code=CODE,
    )


@lab.asks("mean")
def mean(subject: Subject) -> lesson.Choice:
    runs = trainings()
    n, better = len(runs), sum(run.mean_loss < min(run.losses) for run in runs)
    worse = sum(run.mean_loss > max(run.losses) for run in runs)
    right = "lower" if better > n / 2 else "higher" if worse > n / 2 else "between"
    return lab.choice("mean", ("lower", "between", "higher"), right, n=n, better=better)
