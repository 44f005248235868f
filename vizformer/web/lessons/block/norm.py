"""The laboratory Norm: one row's mean and variance, gamma and beta set by hand, and what a neighbour changes."""

import numpy as np
import streamlit as st

from vizformer.components import matrix, table
from vizformer.components.table import Number, Row
from vizformer.explain import latex
from vizformer.explain.block_rows import SublayerKind
from vizformer.explain.norm_rows import NeighbourEffect, NormNumbers
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.block import computations, wording
from vizformer.web.lessons.block.place import Place, choose
from vizformer.web.widgets import lesson, proof_badge
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words import labels
from vizformer.web.words.i18n import _

NEIGHBOURS = ("今天的天气很好。", "She opened the door and saw a cat.")
GAMMAS = tuple(step / 4 for step in range(-4, 13))
BETAS = tuple(step / 4 for step in range(-12, 13))
SHOWN = 6  # columns of the small tables
NORMS = {"layer": "LayerNorm", "rms": "RMSNorm", "batch": "BatchNorm"}


@laboratory
def norm(subject: Subject) -> None:
    """One norm of a layer for one token, number by number; then the sentence with another neighbour in its batch."""
    st.html(table.style() + matrix.style())
    if (question := length_question(subject)) is None:
        st.info(_("The layers of this model have no norms: choose another model."))
        return
    place = choose(subject)
    kind = _sublayer(subject, place)
    by_hand = st.toggle(_("Set γ and β by hand"), **lesson.setting("block.by_hand", False))
    gamma = beta = None
    if by_hand:
        gamma = st.select_slider("γ", GAMMAS, **lesson.setting("block.gamma", 1.0, GAMMAS))
        beta = st.select_slider("β", BETAS, **lesson.setting("block.beta", 0.0, BETAS))
    found = computations.norm_numbers(subject, place.stack, place.layer, kind, place.row, gamma, beta)
    rms, by_hand_root = subject.config.norm == "rms_norm", subject.config.norm == "deviation_norm"
    _numbers(subject, place, found, rms, by_hand_root)
    if by_hand:
        st.text(
            _(
                "With γ = {gamma:g} and β = {beta:g} everywhere: mean {mean}, standard deviation {deviation}, length "
                "{length}.",
                gamma=gamma,
                beta=beta,
                mean=matrix.number(found.result_mean),
                deviation=matrix.number(found.result_deviation),
                length=matrix.number(found.result_length),
            )
        )
    else:
        proof_badge.show(found.proof, edited=bool(subject.edited))
    _formula(found, rms, by_hand_root)
    lesson.ask(question)
    _neighbours(subject, place, kind)


def _sublayer(subject: Subject, place: Place) -> SublayerKind:
    """Which of the layer's norms."""
    cross = place.stack == "decoder" and "encoder" in subject.trace.tokens
    kinds: tuple[SublayerKind, ...] = ("self", "cross", "feedforward") if cross else ("self", "feedforward")
    order = subject.config.norm_order
    where = {"post": _("Norm after"), "output": _("Norm of what is brought by")}
    chosen: SublayerKind | None = st.segmented_control(
        where.get(order, _("Norm before")),
        kinds,
        format_func=wording.sublayer,
        required=True,
        **lesson.setting("block.norm", "self", kinds),
    )
    return chosen or "self"


def _numbers(subject: Subject, place: Place, found: NormNumbers, rms: bool, deviation: bool) -> None:
    name = subject.trace.tokens[place.stack][place.row].text
    rows = {"x": found.row}
    if not rms:
        rows["x − μ"] = found.centred
    rows["÷ √(ρ + ε)" if rms else "÷ (σ + ε)" if deviation else "÷ √(σ² + ε)"] = found.scaled
    rows["γ"] = found.gamma
    if not rms:
        rows["β"] = found.beta
    rows[_("result")] = found.result
    st.html(
        matrix.to_html(
            np.stack(list(rows.values())),
            rows=list(rows),
            caption=_("Row {row}, “{token}”", row=place.row, token=name),
            shown=SHOWN,
        )
    )


def _formula(found: NormNumbers, rms: bool, deviation: bool) -> None:
    d, eps, x0 = len(found.row), latex.number(found.eps), latex.number(found.row[0])
    gamma, beta = latex.factor(found.gamma[0]), latex.factor(found.beta[0])
    if rms:
        symbols = r"x'_m = \gamma_m \frac{x_m}{\sqrt{\rho + \epsilon}}, \qquad \rho = \frac{1}{d} \sum_m x_m^2"
        live = [
            rf"\rho &= \tfrac{{1}}{{{d}}} ({latex.sum_of(found.squares)}) \\ &= {latex.number(found.variance)}",
            rf"x'_0 &= {gamma} \cdot \frac{{{x0}}}{{\sqrt{{{latex.number(found.variance)} + {eps}}}}}"
            rf" = {latex.number(found.result[0])}",
        ]
        code = "rho = (x ** 2).mean()\nresult = gamma * x / torch.sqrt(rho + eps)"
    elif deviation:
        symbols = (
            r"\begin{aligned} x'_m &= \gamma_m \frac{x_m - \mu}{\sigma + \epsilon} + \beta_m \\ "
            r"\mu &= \tfrac{1}{d} \textstyle\sum_m x_m, \quad "
            r"\sigma^2 = \tfrac{1}{d - 1} \textstyle\sum_m (x_m - \mu)^2 \end{aligned}"
        )
        live = [
            rf"\mu &= \tfrac{{1}}{{{d}}} ({latex.sum_of(found.row)}) \\ &= {latex.number(found.mean)}",
            rf"\sigma &= {latex.number(found.variance**0.5)}",
            rf"x'_0 &= {gamma} \cdot \frac{{{x0} - {latex.factor(found.mean)}}}"
            rf"{{{latex.number(found.variance**0.5)} + {eps}}} + {beta} \\ &= {latex.number(found.result[0])}",
        ]
        code = (
            "mean = x.mean()\nstd = x.std()  # divided by d - 1, as this norm was written by hand\n"
            "result = gamma * (x - mean) / (std + eps) + beta"
        )
    else:
        symbols = (
            r"\begin{aligned} x'_m &= \gamma_m \frac{x_m - \mu}{\sqrt{\sigma^2 + \epsilon}} + \beta_m \\ "
            r"\mu &= \tfrac{1}{d} \textstyle\sum_m x_m, \quad "
            r"\sigma^2 = \tfrac{1}{d} \textstyle\sum_m (x_m - \mu)^2 \end{aligned}"
        )
        live = [
            rf"\mu &= \tfrac{{1}}{{{d}}} ({latex.sum_of(found.row)}) \\ &= {latex.number(found.mean)}",
            rf"\sigma^2 &= {latex.number(found.variance)}",
            rf"x'_0 &= {gamma} \cdot \frac{{{x0} - {latex.factor(found.mean)}}}"
            rf"{{\sqrt{{{latex.number(found.variance)} + {eps}}}}} + {beta} \\ &= {latex.number(found.result[0])}",
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


def length_question(subject: Subject) -> lesson.Number | None:
    """None of a model whose layers have no norms."""
    if subject.config.norm_order == "none":
        return None
    d = subject.config.d_model
    return lesson.Number(
        "block",
        "length",
        _(
            "A row of {d} numbers goes through this model's norm, with γ = 1 and β = 0. How long is it afterwards (the "
            "root of the sum of its squares)?",
            d=d,
        ),
        d**0.5,
        _(
            "The mean of its squares is then 1, so their sum is {d}, and the length is √{d} = {length}, whatever went in.",
            d=d,
            length=f"{d**0.5:.2f}",
        ),
        tolerance=0.1,
        written="{:.2f}".format,
        about=f"{d}",
    )


def _neighbours(subject: Subject, place: Place, kind: SublayerKind) -> None:
    """The same sentence in a batch with one neighbour, then with another: what moves under each norm."""
    st.markdown(_("**Another sentence in the batch**"))
    one, other = NEIGHBOURS
    if not all(model_cache.reads(subject.model, text) for text in NEIGHBOURS):
        st.caption(_("This model cannot read the two sentences that would be its neighbours."))
        return
    found = computations.neighbour_effect(subject, place.stack, place.layer, kind, one, other)
    lesson.ask(neighbour_question(found))
    tokens = labels.texts(subject.trace.tokens[place.stack])
    chosen = st.segmented_control(
        _("Norm"),
        list(NORMS),
        format_func=NORMS.__getitem__,
        required=True,
        **lesson.setting("block.compare", "batch", tuple(NORMS)),
    )
    chosen = chosen or "batch"
    for text, rows in zip(NEIGHBOURS, (found.first[chosen], found.second[chosen]), strict=True):
        caption = _("{norm}, next to “{text}”", norm=NORMS[chosen], text=text)
        st.html(matrix.to_html(rows[:, :SHOWN], rows=tokens, caption=caption, digits=2, shown=SHOWN))
    columns = (
        "",
        _("mean and variance over"),
        _("largest change in your sentence"),
        _("largest |mean| of a row"),
        _("of a column of the batch"),
    )
    over = {"layer": _("a row"), "rms": _("a row (no mean)"), "batch": _("a column, all rows of the batch")}
    rows_of = [
        Row(
            (
                NORMS[name],
                over[name],
                Number(found.moved[name], matrix.number(found.moved[name])),
                Number(found.row_means[name], matrix.number(found.row_means[name])),
                Number(found.column_means[name], matrix.number(found.column_means[name])),
            ),
            "marked" if name == chosen else "",
        )
        for name in NORMS
    ]
    st.html(table.to_html(columns, rows_of))
    st.caption(
        _(
            "The rows that go into this norm, normalised in three ways with γ = 1 and β = 0; BatchNorm as in training. "
            "Batch 1: your sentence and “{one}”. Batch 2: your sentence and “{other}”.",
            one=one,
            other=other,
        )
    )


def neighbour_question(found: NeighbourEffect) -> lesson.Choice:
    """Under which norm does the neighbour in the batch count?"""
    return lesson.Choice(
        "block",
        "neighbour",
        _("Only the other sentence in the batch is replaced. Under which norm do the numbers of your sentence change?"),
        [*NORMS.values(), _("under all three")],
        2,
        _(
            "BatchNorm takes mean and variance of a column over all rows of the batch, so the neighbour is in them. The "
            "other two look at one row alone: a change of {change} was measured.",
            change=matrix.number(max(found.moved["layer"], found.moved["rms"])),
        ),
    )
