"""A laboratory of the lesson Training: a smoothed target, the floor of its loss, and two small trainings."""

import math
from typing import Literal

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.analysis.training import small_trainings
from vizformer.analysis.training.small_trainings import SmoothingMarks
from vizformer.components import table
from vizformer.components.table import Number, Row, numbers
from vizformer.explain.loss_parts import LossNumbers
from vizformer.training import loss
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.training.predictions import choose, loss_numbers, notes, paper_table, say_unless_predicts
from vizformer.web.widgets import chart, lesson, proof_badge
from vizformer.web.widgets.lab import Laboratory, controls
from vizformer.web.words import labels
from vizformer.web.words.labels import share

lab = Laboratory("training", "smoothing")
EPSILONS = (0.0, 0.05, 0.1, 0.2, 0.3)
PAPER = (
    (0.0, 4.67, 25.3),
    (0.1, 4.92, 25.8),
    (0.2, 5.47, 25.7),
)  # smoothing, perplexity, BLEU: Table 3, row D and base


@cached
def by_smoothing() -> dict[float, SmoothingMarks]:
    """The bundled trainings, without smoothing and with it."""
    return small_trainings.by_smoothing(notes("smoothing"))


@lab.draws
def draw_smoothing(subject: Subject) -> None:
    st.html(table.style())
    if say_unless_predicts(lab, subject):
        with controls():
            place = choose(lab, subject)
            eps = lab.steps("eps", EPSILONS, 0.1)
        found = loss_numbers(subject, place, eps)
        lesson.ask(floor(subject), folded=True)
        _target(found)
        proof_badge.show(found.proof, lab.text("checked", difference=f"{found.proof.difference:.1g}"))
        _formula(found)
    _two_trainings(subject)


@lab.asks("floor")
def floor(subject: Subject) -> lesson.Number:
    n = subject.config.vocab_size
    least = loss.smoothing_floor(n, 0.1)
    wrong = {"zero": 0, "right": -math.log(0.9), "even": math.log(n)}
    said = lab.asked("floor", n, wrong=wrong, n=f"{n:,}", floor=f"{least:.4f}")
    return lesson.Number(answer=least, tolerance=0.2, written="{:.2f}".format, **said)


@lab.asks("worse")
def worse(subject: Subject) -> lesson.Choice:
    return lab.choice("worse", ("both", "bleu", "perplexity"), "bleu")


def _target(found: LossNumbers) -> None:
    """The target as bars, then all numbers of the row."""
    names = [*labels.told_apart(found.tokens), lab.text("others", n=f"{found.rest:,}")]
    chart.show(
        figures.next_token_bars(
            names, np.array([*found.target, found.rest_target]), title=lab.text("target", eps=found.eps)
        ),
        key="training.target",
    )
    columns = (
        (*found.target, found.rest_target),
        (*found.probabilities, found.rest_probability),
        (*found.gradient, found.rest_gradient),
    )
    kinds: dict[int, Literal["marked", "faint"]] = {found.right: "marked", len(names) - 1: "faint"}
    rows = [
        Row(name, share(q), share(p), *numbers("+.4f", g), kind=kinds.get(index, ""))
        for index, (name, q, p, g) in enumerate(zip(names, *columns, strict=True))
    ]
    titles = [lab.text(name) for name in ("token", "q", "probability", "gradient")]
    st.html(table.to_html(titles, rows, bar=2, caption=lab.text("step")))


def _formula(found: LossNumbers) -> None:
    eps, v = found.eps, found.vocabulary
    lesson.formula(
        r"\begin{aligned} q_j &= (1 - \epsilon)\,[j = y] + \epsilon / V \\ L_\epsilon &= -\sum_j q_j \ln p_j = "
        r"(1 - \epsilon)\, L + \epsilon \cdot \tfrac{1}{V} \sum_j (-\ln p_j) \\"
        r" \partial L_\epsilon / \partial z_j &= p_j - q_j, \qquad \min L_\epsilon = -\sum_j q_j \ln q_j \end{aligned}",
        live=r"\begin{aligned} "
        rf"L_\epsilon &= {1 - eps:g} \cdot {found.loss:.4f} + {eps:g} \cdot {found.mean_surprise:.4f} "
        rf"= {found.smoothed:.4f} \\"
        rf"\min L_\epsilon &= {found.floor:.4f} \qquad L_\epsilon - \min L_\epsilon = {found.smoothed - found.floor:.4f}"
        r" \end{aligned}",
        code=f"vocabulary, eps, right = {v}, {eps}, 3\n"
        "z = torch.randn(vocabulary, requires_grad=True)  # the logits of a row\n"
        "loss = F.cross_entropy(z[None], torch.tensor([right]), label_smoothing=eps)\n"
        "loss.backward()\n"
        "q = torch.full((vocabulary,), eps / vocabulary)\n"
        "q[right] += 1 - eps\n"
        "same = torch.allclose(z.grad, z.detach().softmax(0) - q, atol=1e-6)\n"
        "floor = -torch.special.xlogy(q, q).sum()",
    )


def _two_trainings(subject: Subject) -> None:
    """The two bundled trainings beside the paper's."""
    measured, marks = notes("smoothing"), by_smoothing()
    recipe, pairs = measured["recipe"], measured["pairs"]
    st.markdown(lab.text("trainings"))
    lesson.ask(worse(subject))
    named = {0.0: lab.text("without"), 0.1: "ε = 0.1"}
    chart.show(
        figures.line_curves(
            np.array(marks[0.0].steps),
            {named[eps]: one.perplexities for eps, one in marks.items()},
            place_title=lab.text("update"),
            value_title=lab.text("perplexity"),
            hover=lab.text("hover"),
            digits=2,
            title=lab.text("held", n=len(recipe["seeds"])),
        ).update_traces(mode="lines+markers"),
        key="training.perplexity",
    )
    rows = [
        Row(
            named[eps],
            *numbers(".2f", one.perplexity),
            *numbers(".1%", one.sure, one.right),
            Number(one.bleu, " / ".join(f"{value:.1f}" for value in one.bleus)),
        )
        for eps, one in marks.items()
    ]
    columns = [lab.text(name) for name in ("ours", "perplexity", "sure", "often", "bleu")]
    st.html(table.to_html(columns, rows) + paper_table(lab, "ε", PAPER))
    plain, smoothed = marks[0.0].bleus, marks[0.1].bleus
    wins = sum(b > a for a, b in zip(plain, smoothed, strict=True))
    counts = {"n": f"{measured['parameters']:,}", "updates": f"{recipe['updates']:,}", "pairs": f"{pairs['train']:,}"}
    size, higher = lab.text("size", **counts, test=pairs["test"]), lab.text("higher", wins=wins, n=len(plain))
    command = "`python -m recipes.smoothing cmn.txt smoothing.json`"
    st.caption(f"{size} {higher} {lab.text('again', command=command)}")
