"""A laboratory of the lesson Training: the cross-entropy of one prediction, then of all rows, padding left out."""

import math

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.components import matrix, table
from vizformer.components.table import Number, Row
from vizformer.explain import latex
from vizformer.explain.loss_parts import Losses, LossNumbers
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.training import predictions
from vizformer.web.lessons.training.predictions import loss_numbers, losses, predicts, say_unless_predicts
from vizformer.web.widgets import chart, lesson, proof_badge
from vizformer.web.widgets.lab import Laboratory, controls
from vizformer.web.words import labels
from vizformer.web.words.labels import share

lab = Laboratory("training", "loss")
SHOWN = 40  # rows of the text
SHARES = np.linspace(0.001, 1, 400)  # of the curve
PADDING = 20  # positions, at most


@lab.draws
def draw_loss(subject: Subject) -> None:
    st.html(table.style())
    if not say_unless_predicts(lab, subject):
        return
    with controls():
        place = predictions.choose(lab, subject)
    found, numbers = losses(subject, place.hidden), loss_numbers(subject, place, 0.0)
    probability = float(numbers.probabilities[numbers.right])
    chart.show(
        figures.line_curves(
            SHARES,
            {"−ln p": -np.log(SHARES)},
            place_title=lab.text("probability"),
            value_title=lab.text("columns.loss"),
            mark=(
                probability,
                f"{numbers.tokens[numbers.right].text}: p = {probability:.3g}, −ln p = {numbers.loss:.3f}",
            ),
            value_range=(-0.6, 7.0),
            title="L = −ln p",
        ),
        key="training.loss",
    )
    _one_row(numbers)
    proof_badge.show(numbers.proof, lab.text("checked", difference=f"{numbers.proof.difference:.1g}"))
    _formula(numbers)
    lesson.ask(guess(subject))
    _all_rows(found, masked=place.hidden is not None)
    st.markdown(lab.text("padded"))
    lesson.ask(padding(subject))
    _padding(found)


@lab.asks("guess")
def guess(subject: Subject) -> lesson.Number:
    n = subject.config.vocab_size
    wrong = {"bits": math.log2(n), "ten": math.log10(n), "share": 1 / n, "perplexity": n}
    said = lab.asked("guess", n, wrong=wrong, tokens=f"{n:,}", n=n, loss=f"{math.log(n):.2f}")
    return lesson.Number(answer=math.log(n), tolerance=0.1, written="{:.2f}".format, **said)


@lab.asks("padding")
def padding(subject: Subject) -> lesson.Choice | None:
    if not predicts(subject):
        return None
    found = losses(subject, predictions.hidden_now(subject))
    n, total = len(found.losses), f"{found.total:.4f}"
    return lab.choice("padding", ("same", "half", "twice"), "half", subject, total=total, both=2 * n, n=n)


def _one_row(found: LossNumbers) -> None:
    names = labels.told_apart(found.tokens)
    rows = [
        Row(
            name, float(z), share(p), -math.log(p) if p > 0 else math.inf, kind="marked" if index == found.right else ""
        )
        for index, (name, z, p) in enumerate(zip(names, found.logits, found.probabilities, strict=True))
    ]
    rows.append(Row(lab.text("others", n=f"{found.rest:,}"), "", share(found.rest_probability), "", kind="faint"))
    columns = (lab.text("token"), lab.text("logit"), lab.text("probability"), "−ln p")
    st.html(table.to_html(columns, rows, bar=2, caption=lab.text("says")))


def _formula(found: LossNumbers) -> None:
    z = found.logits
    terms = " + ".join(rf"e^{{{latex.number(float(one))}}}" for one in z[:2])
    lesson.formula(
        r"L = -\ln p_y = \ln \sum_{j} e^{z_j} - z_y",
        live=r"\begin{aligned} "
        rf"\ln ({terms} + \dots) &= {found.log_sum:.4f} \\ "
        rf"L = {found.log_sum:.4f} - {latex.factor(float(z[found.right]))} &= {latex.number(found.loss)} \end{{aligned}}",
        code="log_sum, z_y = torch.tensor(found), torch.tensor(right)\n"
        "loss = log_sum - z_y\n"
        "# = F.cross_entropy(logits, wanted)",
        given={"found": found.log_sum, "right": float(z[found.right])},
    )


def _all_rows(found: Losses, masked: bool) -> None:
    st.markdown(lab.text("rows"))
    asked = list(zip(found.asked, found.probabilities, found.losses, strict=True))
    shown = [
        Row(Number(one.row, str(one.row)), one.read.text, one.right.text, share(p), float(loss))
        for one, p, loss in asked[:SHOWN]
    ]
    shown.append(Row(lab.text("together"), "", "", "", found.total, kind="sum"))
    names = ("place", "reads", "masked" if masked else "next", "its", "loss")
    st.html(table.to_html(lab.columns(*names), shown, bar=3))
    if len(asked) > SHOWN:
        lab.note("first", shown=SHOWN, n=len(asked))
    if masked:
        lab.note("seventh")


def _padding(found: Losses) -> None:
    n, padding = len(found.losses), lab.slider("pad", 0, PADDING, 4)
    lesson.formula(
        r"\bar L = \frac{1}{n} \sum_{i\,:\,y_i \neq \text{pad}} L_i \qquad \text{perplexity} = e^{\bar L}",
        live=r"\begin{aligned} "
        rf"\tfrac{{{found.total:.4f}}}{{{n}}} &= {found.mean:.4f} \qquad e^{{{found.mean:.4f}}} = {found.perplexity:.4f} \\"
        rf"\tfrac{{{found.total:.4f}}}{{{n} + {padding}}} &= {found.padded_mean(padding):.4f} "
        rf"\quad (\text{{{lab.text('counted')}}}) \end{{aligned}}",
        code=f"padded = torch.cat([losses, torch.zeros({padding})])\n"
        "real = torch.arange(len(padded)) < len(losses)\n"
        "mean = padded[real].mean()  # F.cross_entropy(..., ignore_index=pad_id) does the same\n"
        "wrong, perplexity = padded.mean(), torch.exp(mean)",
        given={"losses": found.losses},
    )
    lab.note("unsure", value=matrix.number(found.perplexity, 2))
