"""The laboratory Learning rate: up in a straight line, then down with the root of the step."""

import streamlit as st

from vizformer import figures
from vizformer.training.schedule import inverse_square_root, peak
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.training import computations
from vizformer.web.widgets import chart, lesson
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words.i18n import _

WIDTHS = (64, 128, 256, 512, 768, 1024)
WARMUPS = (100, 400, 1000, 2000, 4000, 8000, 16_000)
STEPS = (1, 10, 100, 400, 1000, 2000, 4000, 8000, 16_000, 32_000, 64_000, 100_000)
LAST = 5  # times the warm-up that the picture shows


@laboratory
def rate(subject: Subject) -> None:
    """The curve with sliders for width, warm-up and step."""
    lesson.ask(peak_question())
    d = st.select_slider("d_model", WIDTHS, **lesson.setting("training.d", 512, WIDTHS))
    warmup = st.select_slider(_("Warm-up steps"), WARMUPS, **lesson.setting("training.warmup", 4000, WARMUPS))
    step = st.select_slider(_("Step"), STEPS, **lesson.setting("training.step", 1000, STEPS))
    now, highest = inverse_square_root(step, d_model=d, warmup=warmup), peak(d, warmup)
    last = max(LAST * warmup, step)
    steps, rates, rising, falling = computations.schedule(d, warmup, last)
    chart.show(
        figures.line_curves(
            steps,
            {
                _("learning rate"): 1e4 * rates,
                _("step · warm-up^−1.5"): 1e4 * rising,
                _("step^−0.5"): 1e4 * falling,
            },
            place_title=_("step"),
            value_title=_("learning rate, in 1/10,000"),
            hover=_("{name}, step {place}: {value}"),
            value_range=(0.0, 1.4e4 * highest),
            mark=(step, _("step {n}", n=f"{step:,}")),
            title=_("The smaller of two curves; the corner is at step {n}", n=f"{warmup:,}"),
        ),
        key="training.rate",
    )
    smaller = rf"{step} \cdot {warmup}^{{-1.5}}" if step < warmup else rf"{step}^{{-0.5}}"
    lesson.formula(
        r"\eta_t = d_\mathrm{model}^{-0.5} \cdot \min\!\left(t^{-0.5},\; t \cdot \mathrm{warmup}^{-1.5}\right)",
        live=r"\begin{aligned} "
        rf"\eta_{{{step}}} &= {d}^{{-0.5}} \cdot {smaller} = {_tex(now)} \\"
        rf"\eta_{{{warmup}}} &= ({d} \cdot {warmup})^{{-0.5}} = {_tex(highest)} \end{{aligned}}",
        code=f"d_model, warmup, step = {d}, {warmup}, {step}\n"
        "model = torch.nn.Linear(4, 4)  # any model\n"
        "adam = torch.optim.Adam(model.parameters(), lr=1.0, betas=(0.9, 0.98), eps=1e-9)\n"
        "factor = lambda s: d_model**-0.5 * min((s + 1) ** -0.5, (s + 1) * warmup**-1.5)  # s counts from 0\n"
        "schedule = torch.optim.lr_scheduler.LambdaLR(adam, factor)  # schedule.step() after every adam.step()\n"
        "rate = factor(step - 1)",
    )
    st.caption(
        _(
            "The paper: d_model = 512, 4,000 steps of warm-up, 100,000 steps (12 hours) for the base model. Your sentence "
            "plays no part here. The models that this app brings along were trained with the same formula."
        )
    )
    lesson.ask(wide_question())


def wide_question() -> lesson.Choice:
    return lesson.Choice(
        "training",
        "wide",
        _("A model with d_model = 2048 instead of 512, the same warm-up. How high is its peak?"),
        [_("four times as high"), _("half as high"), _("the same"), _("a quarter")],
        1,
        _(
            "The width enters as d_model^−0.5: four times as wide, half the learning rate. Sums over more numbers move "
            "further when every weight moves a little."
        ),
    )


def _tex(value: float) -> str:
    """Three digits that count, with a power of ten."""
    mantissa, __, exponent = f"{value:.2e}".partition("e")
    return rf"{mantissa} \cdot 10^{{{int(exponent)}}}"


def peak_question() -> lesson.Number:
    highest = peak(1024, 4000)
    return lesson.Number(
        "training",
        "peak",
        _(
            "d_model = 1024 and 4,000 steps of warm-up, as in the paper's big model: how high is the learning rate at its "
            "peak? Enter it in ten-thousandths (6 for 0.0006)."
        ),
        1e4 * highest,
        _(
            "At step 4,000 both curves are the same, and the rate is (1024 · 4000)^−0.5 = {rate}. The paper does not print "
            "such numbers; they follow from the formula.",
            rate=f"{highest:.2e}",
        ),
        tolerance=0.1,
        written="{:.2f}".format,
    )
