"""A laboratory of the lesson Add & norm, feed-forward: one row's norm, gamma and beta by hand, what a neighbour changes."""

from dataclasses import replace

import numpy as np
import streamlit as st

from vizformer.components import matrix, table
from vizformer.components.table import Number, Row
from vizformer.explain import block_rows, latex
from vizformer.explain.block_rows import NeighbourEffect, NormNumbers
from vizformer.explain.sublayer import SublayerKind
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.block.place import Place, choose, usual
from vizformer.web.widgets import lesson, proof_badge
from vizformer.web.widgets.lab import Laboratory, aside
from vizformer.web.words import labels

lab = Laboratory("block", "norm")
NEIGHBOURS = ("今天的天气很好。", "She opened the door and saw a cat.")
GAMMAS = tuple(step / 4 for step in range(-4, 13))
BETAS = tuple(step / 4 for step in range(-12, 13))
SHOWN = 6  # columns of the small tables
NORMS = {"layer": "LayerNorm", "rms": "RMSNorm", "batch": "BatchNorm"}
DIVIDED = {"rms_norm": "÷ √(ρ + ε)", "layer_norm": "÷ √(σ² + ε)"}


@cached
def norm_numbers(
    subject: Subject, place: Place, kind: SublayerKind, gamma: float | None, beta: float | None
) -> NormNumbers:
    rows, norm = block_rows.find_norm_rows(subject.checkpoint, subject.trace, place.stack, place.layer, kind)
    return block_rows.norm_numbers(rows, norm, place.row, gamma, beta)


@cached
def neighbour_effect(subject: Subject, stack: str, layer: int, kind: SublayerKind) -> NeighbourEffect:
    """The sentence's rows at a norm, in a batch with one neighbour and with the other."""
    subjects = (subject, *(replace(subject, text=text, target="", edited="") for text in NEIGHBOURS))
    own, first, second = (
        block_rows.find_norm_rows(one.checkpoint, one.trace, stack, layer, kind)[0] for one in subjects
    )
    return block_rows.neighbour_effect(own, first, second)


def reads_neighbours(subject: Subject) -> bool:
    return all(model_cache.reads(subject.model, text) for text in NEIGHBOURS)


@lab.draws
def draw_norm(subject: Subject) -> None:
    st.html(table.style() + matrix.style())
    if (asked := length(subject)) is None:
        st.info(lab.text("without"))
        return
    place, below = choose(lab, subject)
    kind = _sublayer(subject, place)
    by_hand = lab.toggle("by_hand")
    gamma = beta = None
    if by_hand:
        gamma, beta = lab.steps("gamma", GAMMAS, 1.0), lab.steps("beta", BETAS, 0.0)
    found = norm_numbers(subject, place, kind, gamma, beta)
    _numbers(subject, place, found)
    aside(below)
    if by_hand:
        after = {"mean": found.result_mean, "deviation": found.result_deviation, "length": found.result_length}
        written = {name: matrix.number(value) for name, value in after.items()}
        lab.say("set", gamma=gamma, beta=beta, **written)
    else:
        proof_badge.show(found.proof, edited=bool(subject.edited))
    _formula(found, subject.config.norm)
    lesson.ask(asked)
    _neighbours(subject, place, kind)


@lab.asks("length")
def length(subject: Subject) -> lesson.Number | None:
    """How long is a row after the norm?  Nothing of a model whose layers have no norms."""
    if subject.config.norm_order == "none":
        return None
    d = subject.config.d_model
    said = lab.asked("length", d, wrong={"square": d, "unit": 1}, d=d, length=f"{d**0.5:.2f}")
    return lesson.Number(answer=d**0.5, tolerance=0.1, written="{:.2f}".format, **said)


@lab.asks("neighbour")
def neighbour(subject: Subject, place: Place | None = None, kind: SublayerKind = "self") -> lesson.Choice | None:
    if subject.config.norm_order == "none" or not reads_neighbours(subject):
        return None
    moved = neighbour_effect(subject, *(place or usual(subject))[:2], kind).moved
    wrong = {"layer": 0, "rms": 1, "all": 3}
    said = lab.asked("neighbour", wrong=wrong, change=matrix.number(max(moved["layer"], moved["rms"])))
    return lesson.Choice(choices=[*NORMS.values(), lab.text("asks.neighbour.choices.all")], answer=2, **said)


def _sublayer(subject: Subject, place: Place) -> SublayerKind:
    """The sublayer whose norm is chosen."""
    cross = place.stack == "decoder" and "encoder" in subject.trace.tokens
    kinds: tuple[SublayerKind, ...] = ("self", "cross", "feedforward") if cross else ("self", "feedforward")
    order = subject.config.norm_order
    chosen: SublayerKind = st.segmented_control(
        lab.text("where", form="post" if order == "post" else "pre"),
        kinds,
        format_func=lab.texts("sublayer", kinds).__getitem__,
        required=True,
        **lab.setting("norm", "self", kinds),
    )
    return chosen


def _numbers(subject: Subject, place: Place, found: NormNumbers) -> None:
    centred = subject.config.norm != "rms_norm"
    rows = {
        "x": found.row,
        **({"x − μ": found.centred} if centred else {}),
        DIVIDED[subject.config.norm]: found.scaled,
        "γ": found.gamma,
        **({"β": found.beta} if centred else {}),
        lab.text("result"): found.result,
    }
    caption = lab.text("row", row=place.row, token=subject.trace.tokens[place.stack][place.row].text)
    st.html(matrix.to_html(np.stack(list(rows.values())), rows=list(rows), caption=caption, shown=SHOWN))


def _formula(found: NormNumbers, norm: str) -> None:
    d, eps, x0, result = len(found.row), *map(latex.number, (found.eps, found.row[0], found.result[0]))
    gamma, beta, mean = map(latex.factor, (found.gamma[0], found.beta[0], found.mean))
    variance = latex.number(found.variance)
    if norm == "rms_norm":
        symbols = r"x'_m = \gamma_m \frac{x_m}{\sqrt{\rho + \epsilon}}, \qquad \rho = \frac{1}{d} \sum_m x_m^2"
        live = [
            rf"\rho &= \tfrac{{1}}{{{d}}} ({latex.sum_of(found.squares)}) \\ &= {variance}",
            rf"x'_0 &= {gamma} \cdot \frac{{{x0}}}{{\sqrt{{{variance} + {eps}}}}} = {result}",
        ]
        code = "rho = (x ** 2).mean()\nresult = gamma * x / torch.sqrt(rho + eps)"
    else:
        symbols = (
            r"\begin{aligned} x'_m &= \gamma_m \frac{x_m - \mu}{\sqrt{\sigma^2 + \epsilon}} + \beta_m \\ "
            r"\mu &= \tfrac{1}{d} \textstyle\sum_m x_m, \quad "
            r"\sigma^2 = \tfrac{1}{d} \textstyle\sum_m (x_m - \mu)^2 \end{aligned}"
        )
        live = [
            rf"\mu &= \tfrac{{1}}{{{d}}} ({latex.sum_of(found.row)}) \\ &= {latex.number(found.mean)}",
            rf"\sigma^2 &= {variance}",
            rf"x'_0 &= {gamma} \cdot \frac{{{x0} - {mean}}}{{\sqrt{{{variance} + {eps}}}}} + {beta} \\ &= {result}",
        ]
        code = (
            "mean = x.mean()\nvariance = x.var(correction=0)  # divided by d, not by d - 1\n"
            "result = gamma * (x - mean) / torch.sqrt(variance + eps) + beta"
        )
    lesson.formula(
        symbols,
        live=r"\begin{aligned} " + r" \\ ".join(live) + r" \end{aligned}",
        code=code,
        given={"x": found.row, "gamma": found.gamma, "beta": found.beta, "eps": found.eps},
    )


def _neighbours(subject: Subject, place: Place, kind: SublayerKind) -> None:
    """Draws how each norm changes a sentence when its neighbour in the batch is replaced."""
    st.markdown(lab.text("another"))
    if not reads_neighbours(subject):
        lab.note("unread")
        return
    found = neighbour_effect(subject, place.stack, place.layer, kind)
    lesson.ask(neighbour(subject, place, kind))
    tokens = labels.texts(subject.trace.tokens[place.stack])
    chosen = lab.buttons("compare", NORMS, "batch")
    for text, rows in zip(NEIGHBOURS, (found.first[chosen], found.second[chosen]), strict=True):
        caption = lab.text("beside", norm=NORMS[chosen], text=text)
        st.html(matrix.to_html(rows[:, :SHOWN], rows=tokens, caption=caption, digits=2, shown=SHOWN))
    changes = (found.moved, found.row_means, found.column_means)
    cells = {name: [Number(one[name], matrix.number(one[name])) for one in changes] for name in NORMS}
    rows_of = [
        Row(NORMS[name], lab.text(f"over.{name}"), *numbers, kind="marked" if name == chosen else "")
        for name, numbers in cells.items()
    ]
    columns = lab.columns("over", "change", "row", "column")
    st.html(table.to_html(("", *columns), rows_of))
    lab.note("batches", one=NEIGHBOURS[0], other=NEIGHBOURS[1])
