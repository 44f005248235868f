"""The laboratory Adam: one weight, a few gradients, and every number that is remembered in between."""

import streamlit as st

from vizformer.components import table
from vizformer.components.table import Number, Row
from vizformer.explain.adam_numbers import BETA_1, BETA_2, AdamStep
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.training import computations
from vizformer.web.widgets import lesson, proof_badge
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words.i18n import _

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


@laboratory
def adam(subject: Subject) -> None:
    """The updates as a table, and one of them worked out."""
    st.html(table.style())
    lesson.ask(first_question())
    names = {
        "same": _("0.2, again and again"),
        "small": _("0.0002, again and again"),
        "turning": _("0.2 and −0.2 in turn"),
        "spike": _("once 20 among 0.2"),
    }
    chosen = st.segmented_control(
        _("Gradients of the six steps"),
        list(names),
        format_func=names.__getitem__,
        required=True,
        **lesson.setting("training.gradients", "same", tuple(names)),
    )
    rate = st.select_slider(_("Learning rate"), RATES, **lesson.setting("training.lr", 0.01, RATES))
    gradients = GRADIENTS[chosen or "same"]
    t = st.slider(_("Step"), 1, len(gradients), **lesson.setting("training.update", 1, range(1, 7)))
    corrected = st.toggle(_("Bias correction"), **lesson.setting("training.corrected", True))
    steps = computations.adam(gradients, rate, corrected)
    hats = ("m̂", "v̂") if corrected else ("m", "v")
    columns = (_("step"), "g", "m", "v", *hats, _("change"), _("weight"))
    rows = [
        Row(
            (
                Number(one.step, str(one.step)),
                *map(_small, (one.gradient, one.m, one.v, one.m_hat, one.v_hat)),
                _small(one.change),
                _small(one.weight),
            ),
            "marked" if one.step == t else "",
        )
        for one in steps
    ]
    st.html(table.to_html(columns, rows, caption=_("One weight, 0.5 at the start; Adam (0.9, 0.98, 1e-9)")))
    if corrected:
        proof = computations.adam_proof(gradients, rate)
        proof_badge.show(
            proof,
            _("torch.optim.Adam makes the same weights, to {difference}.", difference=f"{proof.difference:.1g}"),
        )
    else:
        st.caption(_("Without the correction: this is not what any library does. Compare the first changes."))
    lesson.formula(
        r"\begin{aligned} m_t &= \beta_1 m_{t-1} + (1 - \beta_1)\, g_t & \hat m_t &= m_t / (1 - \beta_1^t) \\"
        r" v_t &= \beta_2 v_{t-1} + (1 - \beta_2)\, g_t^2 & \hat v_t &= v_t / (1 - \beta_2^t) \\"
        r" w_t &= w_{t-1} - \eta\, \hat m_t / (\sqrt{\hat v_t} + \epsilon) \end{aligned}",
        live=_live(steps, t, rate, corrected, BETA_1, BETA_2),
        code=CODE.format(rate=rate, gradients=list(gradients)),
    )
    lesson.ask(scale_question())


def scale_question() -> lesson.Choice:
    return lesson.Choice(
        "training",
        "scale",
        _("All gradients become 1,000 times smaller. What becomes of the changes that Adam makes?"),
        [_("1,000 times smaller"), _("a million times smaller"), _("nearly nothing: they stay as they are")],
        2,
        _(
            "m̂ is 1,000 times smaller, and so is the root of v̂: their ratio stays. So one learning rate fits weights whose "
            "gradients differ a lot, and the size of the loss plays no part."
        ),
    )


def _small(value: float) -> Number:
    """Six digits that count: squares of small gradients are small."""
    return Number(value, f"{value:.4g}".replace("-", "−"))


def _live(steps: tuple[AdamStep, ...], t: int, rate: float, corrected: bool, beta_1: float, beta_2: float) -> str:
    now = steps[t - 1]
    m, v, w = (steps[t - 2].m, steps[t - 2].v, steps[t - 2].weight) if t > 1 else (0.0, 0.0, 0.5)
    hats = (
        rf" \hat m_{{{t}}} &= \tfrac{{{_tex(now.m)}}}{{1 - {beta_1}^{{{t}}}}} = {_tex(now.m_hat)} \qquad "
        rf"\hat v_{{{t}}} = \tfrac{{{_tex(now.v)}}}{{1 - {beta_2}^{{{t}}}}} = {_tex(now.v_hat)} \\"
        if corrected
        else ""
    )
    return (
        r"\begin{aligned} "
        rf"m_{{{t}}} &= {beta_1} \cdot {_signed(m)} + {1 - beta_1:.1f} \cdot {_signed(now.gradient)} = {_tex(now.m)} \\"
        rf"v_{{{t}}} &= {beta_2} \cdot {_tex(v)} + {1 - beta_2:.2f} \cdot {_signed(now.gradient)}^2 = {_tex(now.v)} \\"
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


def first_question() -> lesson.Number:
    first = computations.adam((50.0,), 0.001, True)[0]
    return lesson.Number(
        "training",
        "first",
        _(
            "The learning rate is 0.001, the first gradient of a weight is 50. By how much does Adam change the weight in "
            "its first step? Enter the size, without a sign."
        ),
        -first.change,
        _(
            "By the learning rate itself. With the bias corrected, m̂ is the gradient and v̂ its square, so that the ratio is "
            "1, whatever the gradient was. That is also why the first steps need a small learning rate: nothing is known "
            "yet of how sure their direction is."
        ),
        tolerance=0.0001,
        written="{:.4f}".format,
    )
