"""The laboratory Smoothing: the target as bars, the floor of the loss, the gradient, and two small trainings."""

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.components import table
from vizformer.components.table import Number, Row
from vizformer.explain.loss_parts import LossNumbers
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.training import computations
from vizformer.web.lessons.training.place import choose
from vizformer.web.lessons.training.two_trainings import two_trainings
from vizformer.web.widgets import chart, lesson, proof_badge
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words import labels
from vizformer.web.words.figure_words import words
from vizformer.web.words.i18n import _

EPSILONS = (0.0, 0.05, 0.1, 0.2, 0.3)
PAPER = (
    (0.0, 4.67, 25.3),
    (0.1, 4.92, 25.8),
    (0.2, 5.47, 25.7),
)  # smoothing, perplexity, BLEU: Table 3, rows D and base


@laboratory
def smoothing(subject: Subject) -> None:
    """One row with a smoothed target, then what smoothing does to a whole training."""
    st.html(table.style())
    place = choose(subject)
    if place is not None:
        eps = st.select_slider("ε", EPSILONS, **lesson.setting("training.eps", 0.1, EPSILONS))
        found = computations.loss_numbers(subject, place.hidden, place.index, eps)
        _target(found)
        _numbers(found)
        proof_badge.show(
            found.proof,
            _(
                "PyTorch's cross_entropy with label_smoothing gives the same, to {difference}.",
                difference=f"{found.proof.difference:.1g}",
            ),
        )
        _formula(found)
        lesson.ask(floor_question(subject))
    two_trainings()


def _target(found: LossNumbers) -> None:
    names = [*labels.told_apart(found.tokens), _("{n} other tokens", n=f"{found.rest:,}")]
    chart.show(
        figures.next_token_bars(
            names,
            np.array([*found.target, found.rest_target]),
            title=_("The target q with ε = {eps:g}", eps=found.eps),
            words=words(figures.ENGLISH),
        ),
        key="training.target",
    )


def _numbers(found: LossNumbers) -> None:
    rows = [
        Row(
            (
                name,
                Number(float(q), labels.percent(float(q))),
                Number(float(p), labels.percent(float(p))),
                Number(float(g), f"{g:+.4f}".replace("-", "−")),
            ),
            "marked" if index == found.right else "",
        )
        for index, (name, q, p, g) in enumerate(
            zip(labels.told_apart(found.tokens), found.target, found.probabilities, found.gradient, strict=True)
        )
    ]
    rows.append(
        Row(
            (
                _("{n} other tokens", n=f"{found.rest:,}"),
                Number(found.rest_target, labels.percent(found.rest_target)),
                Number(found.rest_probability, labels.percent(found.rest_probability)),
                Number(found.rest_gradient, f"{found.rest_gradient:+.4f}".replace("-", "−")),
            ),
            "faint",
        )
    )
    columns = (_("token"), _("target q"), _("probability p"), _("gradient p − q"))
    caption = _("The gradient on the logits: a step down lowers what is positive and raises what is negative")
    st.html(table.to_html(columns, rows, bar=2, caption=caption))


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


def floor_question(subject: Subject) -> lesson.Number:
    v = subject.config.vocab_size
    floor = computations.smoothing_floor(v, 0.1)
    return lesson.Number(
        "training",
        "floor",
        _(
            "ε = 0.1 and {n} tokens. A model finds the best probabilities that there are for this target. What is its loss, "
            "in nats? (Estimate: right within 0.2.)",
            n=f"{v:,}",
        ),
        floor,
        _(
            "{floor}: the entropy of the target itself. A loss of 0 is out of reach, so losses with and without smoothing "
            "cannot be compared; a perplexity is computed without it.",
            floor=f"{floor:.4f}",
        ),
        tolerance=0.2,
        written="{:.2f}".format,
        about=f"{v}",
    )
