"""A laboratory of the lesson Training: Adam with one weight, and every number that is remembered in between."""

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.components import table
from vizformer.components.table import Number, Row, numbers
from vizformer.explain import loss_parts
from vizformer.explain.loss_parts import BETA_1, BETA_2, AdamStep
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.widgets import chart, lesson, proof_badge
from vizformer.web.widgets.lab import Laboratory, controls

lab = Laboratory("training", "adam")
START = 0.5  # the weight
FIRST, RATE = 50.0, 0.001  # the gradient and the learning rate that are asked about
GRADIENTS = {
    "same": (0.2,) * 6,
    "small": (0.0002,) * 6,
    "turning": (0.2, -0.2) * 3,
    "spike": (0.2, 0.2, 20.0, 0.2, 0.2, 0.2),
}
RATES = (0.001, 0.01, 0.1)
CODE = """w = torch.nn.Parameter(torch.tensor(0.5))
adam = torch.optim.Adam([w], lr={rate}, betas=(0.9, 0.98), eps=1e-9)
weights = []
for g in {gradients}:
    w.grad = torch.tensor(g)  # instead of loss.backward()
    adam.step()
    weights.append(w.item())"""


@cached
def updates(gradients: tuple[float, ...], rate: float, corrected: bool) -> tuple[AdamStep, ...]:
    """Every number of the updates with these gradients."""
    return loss_parts.adam(START, gradients, [rate] * len(gradients), corrected=corrected)


@lab.draws
def draw_adam(subject: Subject) -> None:
    with controls():
        gradients = GRADIENTS[lab.buttons("gradients", tuple(GRADIENTS))]
        rate = lab.steps("lr", RATES, 0.01)
        t = lab.slider("update", 1, len(gradients), 1)
        corrected = lab.toggle("corrected", True)
    steps = updates(gradients, rate, corrected)
    rows = [
        Row(
            Number(one.step, str(one.step)),
            *numbers(".4g", one.gradient, one.m, one.v, one.m_hat, one.v_hat, one.change, one.weight),
            kind="marked" if one.step == t else "",
        )
        for one in steps
    ]
    hats = ("m̂", "v̂") if corrected else ("m", "v")
    columns = (lab.text("step"), "g", "m", "v", *hats, lab.text("change"), lab.text("weight"))
    plain = START - rate * np.cumsum(gradients)
    ways = {"Adam": np.array([one.weight for one in steps]), lab.text("plain"): plain}
    chart.show(
        figures.line_curves(
            np.arange(1, len(steps) + 1),
            ways,
            place_title=lab.text("step"),
            value_title=lab.text("weight"),
            mark=(t, f"t = {t}"),
            digits=4,
            title=lab.text("start"),
        ).update_traces(mode="lines+markers"),
        key="training.adam",
    )
    st.html(table.style() + table.to_html(columns, rows))
    lesson.ask(first(subject))
    if corrected:
        proof = loss_parts.adam_proof(START, gradients, [rate] * len(gradients))
        proof_badge.show(proof, lab.text("checked", difference=f"{proof.difference:.1g}"))
    else:
        lab.note("uncorrected")
    lesson.formula(
        r"\begin{aligned} m_t &= \beta_1 m_{t-1} + (1 - \beta_1)\, g_t & \hat m_t &= m_t / (1 - \beta_1^t) \\"
        r" v_t &= \beta_2 v_{t-1} + (1 - \beta_2)\, g_t^2 & \hat v_t &= v_t / (1 - \beta_2^t) \\"
        r" w_t &= w_{t-1} - \eta\, \hat m_t / (\sqrt{\hat v_t} + \epsilon) \end{aligned}",
        live=_live(steps, t, rate, corrected),
        code=CODE.format(rate=rate, gradients=list(gradients)),
    )
    lesson.ask(scale(subject))


@lab.asks("first")
def first(subject: Subject) -> lesson.Number:
    change = -updates((FIRST,), RATE, True)[0].change
    wrong = {"gradient": RATE * FIRST, "early": -updates((FIRST,), RATE, False)[0].change, "square": RATE / FIRST}
    return lesson.Number(answer=change, tolerance=0.0001, written="{:.4f}".format, **lab.asked("first", wrong=wrong))


@lab.asks("scale")
def scale(subject: Subject) -> lesson.Choice:
    return lab.choice("scale", ("thousand", "million", "nothing"), "nothing")


def _live(steps: tuple[AdamStep, ...], t: int, rate: float, corrected: bool) -> str:
    now = steps[t - 1]
    m, v, w = (steps[t - 2].m, steps[t - 2].v, steps[t - 2].weight) if t > 1 else (0.0, 0.0, START)
    hats = (
        rf" \hat m_{{{t}}} &= \tfrac{{{_tex(now.m)}}}{{1 - {BETA_1}^{{{t}}}}} = {_tex(now.m_hat)} \qquad "
        rf"\hat v_{{{t}}} = \tfrac{{{_tex(now.v)}}}{{1 - {BETA_2}^{{{t}}}}} = {_tex(now.v_hat)} \\"
        if corrected
        else ""
    )
    return (
        r"\begin{aligned} "
        rf"m_{{{t}}} &= {BETA_1} \cdot {_signed(m)} + {1 - BETA_1:.1f} \cdot {_signed(now.gradient)} = {_tex(now.m)} \\"
        rf"v_{{{t}}} &= {BETA_2} \cdot {_tex(v)} + {1 - BETA_2:.2f} \cdot {_signed(now.gradient)}^2 = {_tex(now.v)} \\"
        f"{hats}"
        rf"w_{{{t}}} &= {_tex(w)} - {rate:g} \cdot \tfrac{{{_tex(now.m_hat)}}}{{\sqrt{{{_tex(now.v_hat)}}}}} "
        rf"= {_tex(now.weight)}"
        r" \end{aligned}"
    )


def _tex(value: float) -> str:
    """Five digits that count, powers of ten as such."""
    mantissa, e, exponent = f"{value:.5g}".partition("e")
    return rf"{mantissa} \cdot 10^{{{int(exponent)}}}" if e else mantissa


def _signed(value: float) -> str:
    return f"({_tex(value)})" if value < 0 else _tex(value)
