"""The laboratory Results: the paper's configurations, translations and ablations, and its Table 3 once more in small."""

import json
import math
from collections.abc import Callable, Iterable
from typing import Any

import streamlit as st

from vizformer import figures
from vizformer.analysis.costs import paper_results
from vizformer.analysis.costs.paper_results import RECIPES, SOURCE, TABLE_2, TABLE_3, OwnRow, Recipe, loss_changes
from vizformer.assets import asset
from vizformer.components import table
from vizformer.components.table import Number, Row, numbers
from vizformer.config import ModelConfig
from vizformer.figures.curves import Point
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.costs import sizes
from vizformer.web.lessons.costs.sizes import model_cost
from vizformer.web.widgets import chart, lesson
from vizformer.web.widgets.lab import Laboratory, controls
from vizformer.web.widgets.laboratories import laboratory

lab = Laboratory("costs", "results")
LANGUAGES = ("de", "fr")
ASKED = (("h", 1), ("N", 2), ("d_model", 256), ("d_ff", 1024))  # the changes of the question, as the paper names them
GROUPS = ("base", "A", "B", "C", "D", "E", "big")
OPTIONS = {
    **{"P_drop": "dropout", "dropout": "dropout", "positions": "positions", "steps": "steps"},
    **{"N": "layers", "n_encoder_layers": "layers"},
}
"""The name of an option in the paper and in the models -> its name in the words."""
SYMBOLS = {"eps": "ε", "n_heads": "h"}
LINES: dict[str, Callable[[Recipe], str]] = {
    "dropout": lambda one: f"{one.dropout:g}",
    "smoothing": lambda one: f"{one.smoothing:g}",
    "warmup": lambda one: f"{one.warmup:,}",
    "steps": lambda one: f"{one.steps:,}",
    "hours": lambda one: f"{one.hours:g}",
    "averaged": lambda one: str(one.averaged),
}
"""The properties that describe a training -> their texts."""


@cached
def notes() -> dict[str, Any]:
    """Bundled measurements: see assets/lessons/costs/README.md."""
    found: dict[str, Any] = json.loads(asset("lessons", "costs", "ablations.json").read_text(encoding="utf-8"))
    return found


@cached
def own_rows() -> tuple[OwnRow, ...]:
    return paper_results.own_rows(notes())


counted = cached(paper_results.counted)


@lab.draws
def draw_paper_results(subject: Subject) -> None:
    """Three tables of the paper, beside what follows from them, and our own trainings."""
    st.html(table.style())
    lesson.ask(beaten(subject), folded=True)
    _translations(subject)
    lesson.ask(hours(subject))
    _recipes(subject.config)
    _of_paper()
    _of_ours(subject)


@lab.asks("own")
def worst(subject: Subject) -> lesson.Choice | None:
    """Which of four changes makes our own model worst; None where not all of them were trained."""
    rows = own_rows()
    asked = [row for name, value in ASKED for row in rows if (name, value) in row.paper.changed]
    if len(asked) < len(ASKED):
        return None
    changes = [row.loss - rows[0].loss for row in asked]
    said = ", ".join(
        lab.text("times", name=_changed([row.changed[0]]), factor=f"{math.exp(change):.2f}")
        for row, change in zip(asked, changes, strict=True)
    )
    answer = max(range(len(asked)), key=changes.__getitem__)
    factors = [f"{math.exp(change):.2f}" for change in changes]
    wrong = [
        lab.mistake("own", name, i, said=said, factor=factors[i], most=factors[answer], best=_name(asked[answer]))
        for i, (name, __) in enumerate(ASKED)
        if i != answer
    ]
    choices = [_name(row) for row in asked]
    return lesson.Choice(choices=choices, answer=answer, **lab.asked("own", wrong=wrong, said=said))


@lab.asks("hours")
def hours(subject: Subject) -> lesson.Number:
    flops = RECIPES[1].hardware_flops
    wrong = {"one": flops / 8e19, "hours": flops / 3600e19, "days": flops / (3.5 * 1e19)}
    said = lab.asked("hours", wrong=wrong, flops=sizes.scientific(flops))
    return lesson.Number(answer=flops / 1e19, tolerance=0.1, written="{:.2f}".format, **said)


@lab.asks("beaten")
def beaten(subject: Subject) -> lesson.Choice:
    return lab.choice("beaten", ("twentieth", "half", "same", "ten"), "twentieth")


def _recipes(own: ModelConfig) -> None:
    layers = " + ".join(str(count) for count in (own.n_encoder_layers, own.n_decoder_layers) if count)
    base = RECIPES[0]
    lines = [
        (lab.text("recipe.layers"), *(str(one.layers) for one in RECIPES), layers),
        ("d_model", *(str(one.d_model) for one in RECIPES), str(own.d_model)),
        ("d_ff", *(str(one.d_ff) for one in RECIPES), str(own.d_ff)),
        (
            lab.text("recipe.heads"),
            *(f"{one.heads} × {one.d_head}" for one in RECIPES),
            f"{own.n_heads} × {own.d_head}",
        ),
        (
            lab.text("recipe.parameters"),
            *(f"{model_cost(of, 1).total:,}" for of in (*(ModelConfig.preset(one.preset) for one in RECIPES), own)),
        ),
        *(
            (lab.text(f"recipe.{name}"), *map(line, RECIPES), f"{own.dropout:g}" if name == "dropout" else "")
            for name, line in LINES.items()
        ),
    ]
    heads = (lab.text("recipe.label"), lab.text("group.base"), lab.text("group.big"), lab.text("your_model"))
    st.html(table.to_html(heads, [Row(*line) for line in lines], caption=lab.text("recipe.caption")))
    lab.note("batches")
    lesson.formula(
        r"\text{training FLOPs} = \text{GPUs} \cdot \text{seconds} \cdot \text{FLOPs per second}",
        live=rf"8 \cdot 12 \cdot 3600 \cdot 9.5 \cdot 10^{{12}} = {sizes.tex(base.hardware_flops)}",
        code="base = 8 * 12 * 3600 * 9.5e12  # a P100 in single precision, footnote 5\n"
        "big = 8 * 3.5 * 24 * 3600 * 9.5e12",
    )
    # 25,000 target tokens a step, in sentences of 25
    flops = model_cost(ModelConfig.preset("transformer-base"), 25).training_flops(25_000 * base.steps)
    lab.note("estimate", counted=sizes.scientific(flops), share=f"{flops / base.hardware_flops:.0%}")


@laboratory
def _translations(subject: Subject) -> None:
    """Table 2 and its picture, by themselves: another language moves nothing else."""
    with controls():
        chosen = lab.buttons("to", LANGUAGES)
    at = LANGUAGES.index(chosen)
    groups: dict[str, list[Point]] = {lab.text(f"kind.{kind}"): [] for kind in ("one", "ensemble", "ours")}
    one_model, ensemble, ours = groups.values()
    for row in TABLE_2:
        score, cost = row.bleu[at], row.flops[at]
        if score is not None and cost is not None:
            (ours if row.ours else ensemble if row.ensemble else one_model).append(Point(row.name, cost, score))
    chart.show(
        figures.score_against_cost(
            groups,
            cost_title=lab.text("flops"),
            score_title="BLEU",
            hover=lab.text("hover"),
            title=lab.text("point", pair=lab.text(f"to.{chosen}")),
        ),
        key="costs.results",
    )
    rows = [
        Row(
            lab.text("ensemble", name=row.name) if row.ensemble else row.name,
            *("−" if score is None else Number(score, f"{score:g}") for score in row.bleu),
            *("−" if cost is None else Number(cost, sizes.scientific(cost, 1)) for cost in row.flops),
            kind="marked" if row.ours else "",
        )
        for row in TABLE_2
    ]
    model, german, french = lab.columns("model", "german", "french")
    columns = (model, "BLEU EN-DE", "BLEU EN-FR", german, french)
    st.html(table.to_html(columns, rows, caption=lab.text("table_2")))
    lab.note("source", source=SOURCE)


def _of_paper() -> None:
    base, groups = TABLE_3[0], lab.texts("group", GROUPS)
    rows = [
        Row(
            groups[row.group],
            _changed(row.changed) or "N 6, d_model 512, d_ff 2,048, h 8",
            *numbers(".2f", row.perplexity),
            *numbers(".1f", row.bleu),
            "" if row is base else _against(row.bleu - base.bleu),
            "" if row.millions is None else Number(row.millions, str(row.millions)),
            *numbers(".1f", counted(row) / 1e6),
            kind="marked" if row is base else "",
        )
        for row in TABLE_3
    ]
    group, differs, perplexity, against, *rest = lab.columns(
        "group", "differs", "perplexity", "against", "printed", "counted"
    )
    columns = (group, differs, perplexity, "BLEU", against, *rest)
    st.html(table.to_html(columns, rows, caption=lab.text("table_3")))
    lab.note("pieces")


def _of_ours(subject: Subject) -> None:
    """The table of our own trainings, the changes of the loss as a picture, and a question."""
    rows, recipe = own_rows(), notes()["recipe"]
    st.markdown(lab.text("ours"))
    updates, pairs = f"{recipe['updates']:,}", f"{notes()['pairs']['train']:,}"
    st.markdown(lab.text("trained", seeds=len(recipe["seeds"]), updates=updates, pairs=pairs))
    lesson.ask(worst(subject))
    base, groups = rows[0], lab.texts("group", GROUPS)
    shown = [
        Row(
            groups[row.paper.group],
            _changed(row.changed) or "N 2, d_model 64, d_ff 256, h 4",
            *numbers(".2f", row.perplexity),
            *numbers(".1f", row.bleu, row.bleu_range),
            "" if row is base else _against(row.bleu - base.bleu),
            "" if row is base else _against(row.paper.bleu - base.paper.bleu),
            *numbers(",", row.parameters),
            kind="marked" if row is base else "",
        )
        for row in rows
    ]
    group, differs, perplexity, *rest = lab.columns(
        "group", "differs", "perplexity", "seeds", "against", "paper", "parameters"
    )
    st.html(table.to_html((group, differs, perplexity, "BLEU", *rest), shown, caption=lab.text("own_table")))
    own, paper = zip(*loss_changes(rows), strict=True)
    chart.show(
        figures.changes(
            [_name(row) for row in rows[1:]],
            {lab.text("here"): own, lab.text("columns.paper"): paper},
            axis_title=lab.text("change"),
            hover=lab.text("nats"),
            title=lab.text("changes"),
        ),
        key="costs.changes",
    )
    lab.note("evidence")


def _changed(options: Iterable[tuple[str, float | str]]) -> str:
    """What differs from the base model, in the paper's letters or as options of a model; "" where nothing does."""
    said = []
    for name, value in options:
        if name == "n_decoder_layers":  # as many as the encoder has
            continue
        word = lab.text(f"option.{OPTIONS[name]}") if name in OPTIONS else SYMBOLS.get(name, name)
        said.append(f"{word}: {lab.text('learned')}" if isinstance(value, str) else f"{word} {value:,g}")
    return ", ".join(said)


def _name(row: OwnRow) -> str:
    """The change with the paper's numbers and ours: layers 2 (here 1)."""
    first, own = row.paper.changed[0], row.changed[0]
    paper = _changed([first])
    return paper if isinstance(first[1], str) else lab.text("ours_too", paper=paper, own=f"{own[1]:g}")


def _against(difference: float) -> Number:
    """Formats a difference with its sign."""
    return Number(difference, f"{difference:+.1f}".replace("-", "−") if round(difference, 1) else "0.0")
