"""The laboratory Averaging: the last checkpoints of a training, and one model of the mean of their weights."""

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.analysis.training.small_trainings import CHECKPOINTS_APART, Averaging
from vizformer.components import table
from vizformer.components.table import Number, Row
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.training import computations
from vizformer.web.widgets import chart, lesson
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words.i18n import _

CODE = """last = [torch.nn.Linear(3, 2) for _ in range(5)]  # five checkpoints of one training
mean = torch.nn.Linear(3, 2)
states = [model.state_dict() for model in last]
mean.load_state_dict({name: torch.stack([state[name] for state in states]).mean(0) for name in states[0]})"""


@laboratory
def averaging(subject: Subject) -> None:
    """The bundled trainings, checkpoint by checkpoint."""
    st.html(table.style())
    runs = computations.averaging()
    lesson.ask(mean_question())
    names = [_run(run) for run in runs]
    chosen = st.selectbox(
        _("Which training"),
        range(len(runs)),
        format_func=names.__getitem__,
        **lesson.setting("training.run", 0, range(len(runs))),
    )
    run = runs[chosen]
    count = len(run.losses)
    chart.show(
        figures.line_curves(
            np.arange(1, count + 1),
            {_("single checkpoints"): np.array(run.losses), _("the mean of all five"): np.full(count, run.mean_loss)},
            place_title=_("checkpoint"),
            value_title=_("loss (nats per token)"),
            hover=_("{name}, checkpoint {place}: {value}"),
            height=340,
            title=_("Held-out loss: {name}", name=names[chosen]),
        ).update_traces(mode="lines+markers"),
        key="training.averaging",
    )
    rows = [
        Row(
            (
                names[index],
                Number(one.losses[-1], f"{one.losses[-1]:.3f}"),
                Number(one.mean_loss, f"{one.mean_loss:.3f}"),
                Number(one.bleu, f"{one.bleu:.1f}"),
                Number(one.mean_bleu, f"{one.mean_bleu:.1f}"),
            ),
            "marked" if index == chosen else "",
        )
        for index, one in enumerate(runs)
    ]
    columns = (
        _("training"),
        _("loss, the last one"),
        _("loss, the mean"),
        _("BLEU, the last one"),
        _("BLEU, the mean"),
    )
    st.html(table.to_html(columns, rows))
    st.caption(
        _(
            "The same small trainings as in the part Smoothing; the last five checkpoints, {apart} updates apart. The paper "
            "took the last 5 of the base model, one every 10 minutes, and the last 20 of the big one.",
            apart=CHECKPOINTS_APART,
        )
    )
    lesson.formula(
        r"\bar w = \tfrac{1}{k} \sum_{i=1}^{k} w_i",
        live=rf"k = {count}: \quad L(\bar w) = {run.mean_loss:.4f}, \qquad \tfrac1k \textstyle\sum_i L(w_i) = "
        rf"{float(np.mean(run.losses)):.4f}",
        code=CODE,
    )


def mean_question() -> lesson.Choice:
    """How good is the mean of five checkpoints?"""
    runs = computations.averaging()
    better = sum(run.mean_loss < min(run.losses) for run in runs)
    return lesson.Choice(
        "training",
        "mean",
        _(
            "Five checkpoints of one training; every weight of a new model is the mean of its five values. In {n} small "
            "trainings: how is its loss on held-out sentences?",
            n=len(runs),
        ),
        [
            _("mostly lower than that of each of the five"),
            _("between them"),
            _("mostly higher than that of each of the five"),
        ],
        0
        if better > len(runs) / 2
        else 2
        if sum(run.mean_loss > max(run.losses) for run in runs) > len(runs) / 2
        else 1,
        _(
            "Lower than each of the five in {better} of {n} trainings. Every checkpoint stands somewhere beside the "
            "valley's floor, on another side; their mean is nearer to the middle.",
            better=better,
            n=len(runs),
        ),
    )


def _run(run: Averaging) -> str:
    return _("ε = {eps:g}, seed {seed}", eps=run.smoothing, seed=run.seed)
