"""A laboratory of the lesson Training: the same small training without warm-up, without scaling, without the sums."""

import math

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.analysis.training import small_trainings
from vizformer.analysis.training.small_trainings import LeftOutCurves
from vizformer.components import table
from vizformer.components.table import Number, Row, numbers
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import sitemap
from vizformer.web.lessons.training.predictions import notes
from vizformer.web.link import state
from vizformer.web.widgets import chart, lesson
from vizformer.web.widgets.lab import Laboratory, controls
from vizformer.web.words.i18n import Markup

lab = Laboratory("training", "without")
LEFT_OUT = ("nothing", "warm-up", "scaling", "residual")


@cached
def curves() -> dict[str, LeftOutCurves]:
    """The bundled trainings, by what was left out."""
    return small_trainings.left_out_curves(notes("left_out"))


@lab.draws
def draw_left_out_parts(subject: Subject) -> None:
    measured, found, names = notes("left_out"), curves(), lab.texts("name", LEFT_OUT)
    recipe, guessing = measured["recipe"], measured["guessing"]
    seeds, d, warmup, factor = (recipe[name] for name in ("seeds", "d_model", "warmup", "factor"))
    with controls():
        row = seeds.index(lab.buttons("of", {seed: str(seed) for seed in seeds}))
    lesson.ask(without(subject), folded=True)
    chart.show(
        figures.line_curves(
            np.array(measured["updates"]),
            {names[name]: curve.curves[row] for name, curve in found.items()},
            place_title=lab.text("update"),
            value_title=lab.text("loss"),
            hover=lab.text("hover"),
            value_range=(0.0, 1.4 * guessing),
            title=lab.text("reverse", seed=seeds[row]),
        ),
        key="training.left_out",
    )
    rows = [
        Row(
            names[name],
            *numbers(".3f", *curve.last),
            Number(curve.learned, lab.text("learned", n=curve.learned, of=len(seeds))),
        )
        for name, curve in found.items()
    ]
    losses = (lab.text("columns.loss", seed=seed) for seed in seeds)
    columns = (lab.text("columns.out"), *losses, lab.text("columns.learned"))
    caption = lab.text("after", n=recipe["updates"], loss=f"{guessing:.2f}")
    st.html(table.style() + table.to_html(columns, rows, caption=caption))
    lab.note("blind", blind=f"{measured['blind']:.2f}")
    command = Markup("`python -m recipes.omissions left_out.json`")
    lab.note("recipe", layers=recipe["n_layers"], d=d, warmup=warmup, command=command)
    lesson.formula(
        r"\begin{aligned} \eta_t &= c\, d^{-0.5} \min(t^{-0.5},\, t\, w^{-1.5}) \\ "
        r"\text{no warm-up: } t &\leftarrow \max(t, w) \end{aligned}",
        live=rf"{factor} \cdot ({d} \cdot {warmup})^{{-0.5}} = {factor * (d * warmup) ** -0.5:.4f}",
        code=f"d, warmup = {d}, {warmup}\n"
        f"usual = lambda t: {factor} * d**-0.5 * min(t**-0.5, t * warmup**-1.5)\n"
        "first, without_warmup = usual(1), usual(max(1, warmup))\n"
        "times = without_warmup / first  # so many times as large is the first step",
    )
    lesson.ask(times(subject))
    st.page_link(sitemap.BLOCK.file, query_params=state.lead(part="order"), label=lab.text("norm"))
    st.page_link(sitemap.TRAIN.file, label=lab.text("train"))


@lab.asks("without")
def without(subject: Subject) -> lesson.Choice:
    names = LEFT_OUT[1:]
    found, seeds = curves(), notes("left_out")["recipe"]["seeds"]
    return lab.choice("without", names, next(name for name in names if found[name].learned == len(seeds)))


@lab.asks("times")
def times(subject: Subject) -> lesson.Number:
    warmup = notes("left_out")["recipe"]["warmup"]
    wrong = {"root": math.sqrt(warmup), "same": 1, "square": warmup**2}
    return lesson.Number(answer=warmup, **lab.asked("times", wrong=wrong, n=warmup))
