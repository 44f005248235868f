"""A laboratory of the lesson Add & norm, feed-forward: how wide the feed-forward should be, in small trainings."""

import json
from typing import Any

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.analysis.costs import parameter_count
from vizformer.analysis.costs.parameter_count import WidthRatio
from vizformer.analysis.training import small_trainings
from vizformer.analysis.training.small_trainings import WidthLosses
from vizformer.assets import asset
from vizformer.components import table
from vizformer.components.table import Row, numbers
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.widgets import chart, lesson
from vizformer.web.widgets.lab import Laboratory, controls
from vizformer.web.words.plain_text import Markup

lab = Laboratory("block", "width")
SERIES = ("depth", "size")
USUAL = 4  # d_ff over d_model in the paper
CODE = """d, d_ff = {d}, {d_ff}
layer = torch.nn.TransformerEncoderLayer(d, 1, d_ff)
matrices = sum(p.numel() for p in layer.parameters() if p.dim() == 2) / d**2  # 4 + 2 d_ff / d"""


@cached
def notes() -> dict[str, Any]:
    """The bundled trainings: see `recipes.feed_forward_width`."""
    found: dict[str, Any] = json.loads(asset("lessons", "block", "feed_forward_width.json").read_text(encoding="utf-8"))
    return found


@cached
def series() -> dict[str, tuple[WidthLosses, ...]]:
    """The trainings with one depth, and those with one number of weights."""
    return small_trainings.width_losses(notes())


@cached
def width_ratios(model: ModelRef) -> tuple[WidthRatio, ...]:
    """The model with feed-forwards 1 to 8 times as wide as the residual stream."""
    return parameter_count.width_ratios(model_cache.options(model))


@lab.draws
def draw(subject: Subject) -> None:
    recipe, found = notes()["recipe"], series()
    lesson.ask(question(subject), folded=True)
    with controls():
        against = lab.buttons("against", ("width", "parameters"))
    rows = {row.parameters: row for rows in found.values() for row in rows}
    of = {row: float(row.ratio if against == "width" else row.parameters / 1000) for row in rows.values()}
    places = sorted(set(of.values()))
    names = {
        name: lab.text(f"series.{name}", layers=found[name][0].layers, n=found[name][0].matrices) for name in SERIES
    }
    curves = {names[name]: {of[row]: row for row in rows_of} for name, rows_of in found.items()}
    gap, seeds = float("nan"), recipe["seeds"]
    figure = figures.line_curves(
        np.array(places),
        {
            name: np.array([curve[place].mean if place in curve else gap for place in places])
            for name, curve in curves.items()
        },
        place_title=lab.text(f"place.{against}"),
        value_title=lab.text("loss"),
        hover=lab.text("hover.mean"),
        dots=(
            np.repeat(places, len(seeds)),
            {
                name: np.array([x for at in places for x in (curve[at].losses if at in curve else [gap] * len(seeds))])
                for name, curve in curves.items()
            },
            [lab.text("hover.seed", seed=seed, place=f"{place:.4g}") for place in places for seed in seeds],
        ),
        title=lab.text("trainings"),
    )
    chart.show(figure.update_traces(connectgaps=True), key="block.width")
    _models(found)
    command = Markup("`python -m recipes.feed_forward_width feed_forward_width.json`")
    lab.note("how", d=recipe["d_model"], updates=recipe["updates"], n=len(seeds), command=command)
    lesson.formula(
        r"\frac{P}{d^2} \approx L\,\Big(\underbrace{4}_{W_Q, W_K, W_V, W_O} + \underbrace{2r}_{W_1, W_2}\Big), \qquad "
        r"r = \frac{d_\mathrm{ff}}{d}",
        live=r"\begin{aligned} "
        + r" \\ ".join(
            rf"r = {row.ratio}: \quad & {row.layers} \cdot (4 + 2 \cdot {row.ratio}) = {row.matrices}"
            for row in found["size"]
        )
        + r" \end{aligned}",
        code=CODE.format(d=recipe["d_model"], d_ff=USUAL * recipe["d_model"]),
    )
    _ratios(subject)


@lab.asks("wide")
def question(subject: Subject) -> lesson.Choice:
    rows = series()["size"]
    worst = max(rows, key=lambda row: row.mean)
    others = [row for row in rows if row is not worst]
    choices = [lab.text("asks.wide.choices.one", ratio=row.ratio, n=row.layers) for row in rows]
    means = [row.mean for row in others]
    values = {
        "n": worst.matrices,
        "loss": f"{worst.mean:.3f}",
        "low": f"{min(means):.3f}",
        "high": f"{max(means):.3f}",
        "spread": f"{max(row.spread for row in others):.3f}",
    }
    wrong = [
        lab.mistake("wide", "deep" if row.ratio < worst.ratio else "wider", i, own=f"{row.mean:.3f}", **values)
        for i, row in enumerate(rows)
        if row is not worst
    ]
    return lesson.Choice(choices=choices, answer=rows.index(worst), **lab.asked("wide", wrong=wrong, **values))


def _models(found: dict[str, tuple[WidthLosses, ...]]) -> None:
    """Every model with its parameters, its losses and the seconds that its training took."""
    rows = {row.parameters: row for rows_of in found.values() for row in rows_of}
    cells = [
        Row(
            *numbers(",", row.layers, row.ratio, row.parameters),
            *numbers(".3f", row.mean),
            f"{min(row.losses):.3f} – {max(row.losses):.3f}",
            *numbers(".3f", row.read),
            *numbers(".0f", row.seconds),
            kind="marked" if row.ratio == USUAL else "",
        )
        for row in sorted(rows.values(), key=lambda one: (one.matrices, one.ratio))
    ]
    columns = lab.columns("layers", "ratio", "parameters", "loss", "seeds", "read", "seconds")
    st.html(table.style() + table.to_html(columns, cells))


def _ratios(subject: Subject) -> None:
    """The width of the feed-forward against the parameters of this page's model."""
    d_model, d_ff = subject.config.d_model, subject.config.d_ff
    rows = [
        Row(
            *numbers(",", one.ratio, one.d_ff, one.feedforward),
            *numbers(".0%", one.share),
            *numbers(",", one.model),
            kind="marked" if one.d_ff == d_ff else "",
        )
        for one in width_ratios(subject.model)
    ]
    names = [lab.text("ratio"), "d_ff", *lab.texts("ratios", ("feedforward", "share", "model")).values()]
    caption = lab.text("widths", name=subject.title, own=d_ff / d_model)
    st.html(table.to_html(names, rows, bar=3, caption=caption))
