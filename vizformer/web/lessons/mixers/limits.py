"""The laboratory What each gives up: small models that look up and copy, by what their layers keep."""

import json

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.analysis.costs.state_bytes import kept_bytes
from vizformer.analysis.training import small_trainings
from vizformer.analysis.training.small_trainings import TaskAccuracies
from vizformer.assets import asset
from vizformer.components import table
from vizformer.components.table import Number, Row, numbers
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.widgets import chart, lesson
from vizformer.web.widgets.lab import Laboratory, controls
from vizformer.web.words import labels

lab = Laboratory("mixers", "limits")
TASKS, MIXERS = ("recall", "copy"), ("softmax", "hybrid", "delta", "space")
CODE = """S = torch.zeros(2, 2)
for k, v in zip(keys, values):  # the delta rule, three pairs, a state of two rows
    S = S + torch.outer(k, v - S.T @ k)
read = keys @ S"""
KEYS, VALUES = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]]), np.array([[2.0, 0.0], [0.0, 2.0], [-1.0, 1.0]])


@cached
def trainings() -> dict[str, tuple[TaskAccuracies, ...]]:
    """The bundled ones: see `recipes.mixer_tasks`."""
    return small_trainings.task_accuracies(
        json.loads(asset("lessons", "mixers", "tasks.json").read_text(encoding="utf-8"))
    )


@lab.draws
def draw(subject: Subject) -> None:
    """The accuracy against the length, a dot for each seed; what each keeps at one length."""
    with controls():
        task = lab.buttons("task", TASKS)
    rows, called = trainings()[task], lab.texts("mixer", MIXERS)
    names = [called[one.mixer] for one in rows]
    lengths, seeds = np.array(rows[0].lengths), rows[0].seeds
    drawn = figures.line_curves(
        lengths,
        {name: one.mean for name, one in zip(names, rows, strict=True)},
        place_title=lab.text(f"place.{task}"),
        value_title=lab.text("share"),
        hover=lab.text("hover"),
        dots=(
            np.repeat(lengths, len(seeds)),
            {name: one.accuracies.T.flatten() for name, one in zip(names, rows, strict=True)},
            [lab.text("seed", seed=seed, n=n) for n in lengths for seed in seeds],
        ),
        value_range=(-0.03, 1.03),
        digits=2,
        title=lab.text(f"picture.{task}"),
    )
    chart.show(drawn, key="mixers.limits", title_above=True)
    with controls():
        n = lab.steps("length", rows[0].lengths, rows[0].lengths[-1])
    _kept(names, rows, n)
    one = rows[0]
    command = "`python -m recipes.mixer_tasks tasks.json`"
    sizes = [row.parameters for row in rows]
    low, high, updates, config = f"{min(sizes):,}", f"{max(sizes):,}", f"{one.updates:,}", one.config
    lab.note("how", low=low, high=high, d=config.d_model, heads=config.n_heads, updates=updates, rows=one.rows)
    lab.note("honest", seeds=", ".join(map(str, seeds)), command=command)
    lesson.ask(rows_of_a_state(subject))
    _formula()


@lab.asks("rows")
def rows_of_a_state(subject: Subject) -> lesson.Number:
    rows, columns = next(one.config.state_dims for one in trainings()["recall"] if one.mixer == "delta")
    wrong = {"numbers": rows * columns, "columns": columns, "one": 1}
    return lesson.Number(answer=rows, **lab.asked("rows", wrong=wrong, rows=rows, columns=columns))


def _kept(names: list[str], rows: tuple[TaskAccuracies, ...], n: int) -> None:
    """What each keeps of n tokens in bytes, and how often it is right."""
    at = rows[0].lengths.index(n)
    cells = []
    for name, one in zip(names, rows, strict=True):
        kept, found = kept_bytes(one.config, n), one.accuracies[:, at]
        sizes = (Number(value, labels.size(value)) for value in (kept.cache, kept.state))
        cells.append(Row(name, *sizes, *numbers(".2f", one.mean[at]), f"{found.min():.2f} – {found.max():.2f}"))
    st.html(table.style() + table.to_html(lab.columns("mixer", "cache", "state", "share", "seeds", n=n), cells))


def _formula() -> None:
    """Three pairs in a state of two rows: the third key is a sum of the others."""
    lesson.formula(
        r"k_3 = 0.6\,k_1 + 0.8\,k_2 \;\Rightarrow\; S^\top k_3 = 0.6\,S^\top k_1 + 0.8\,S^\top k_2",
        code=CODE,
        given={"keys": KEYS, "values": VALUES},
    )
