"""A laboratory of the lesson Training: the learning rate, up in a straight line, then down with the root of the step."""

import numpy as np

from vizformer import figures
from vizformer.training.loss import inverse_square_root, peak, rates, unbounded
from vizformer.web.catalogue.subject import Subject
from vizformer.web.widgets import chart, lesson
from vizformer.web.widgets.lab import Laboratory, controls

lab = Laboratory("training", "rate")
WIDTHS = (64, 128, 256, 512, 768, 1024)
WARMUPS = (100, 400, 1000, 2000, 4000, 8000, 16_000)
STEPS = (1, 10, 100, 400, 1000, 2000, 4000, 8000, 16_000, 32_000, 64_000, 100_000)
LAST = 5  # times the warm-up that the picture shows
POINTS = 240  # of the curves


@lab.draws
def draw_learning_rate(subject: Subject) -> None:
    with controls():
        d = lab.steps("d", WIDTHS, 512)
        warmup = lab.steps("warmup", WARMUPS, 4000)
        step = lab.steps("step", STEPS, 1000)
    now, highest = inverse_square_root(step, d_model=d, warmup=warmup), peak(d, warmup)
    steps = np.unique(np.linspace(1, max(LAST * warmup, step), POINTS).astype(int))
    curves = (rates(steps, d, warmup), *unbounded(steps, d, warmup))
    chart.show(
        figures.line_curves(
            steps,
            {lab.text(name): 1e4 * curve for name, curve in zip(("rate", "rising", "falling"), curves, strict=True)},
            place_title=lab.text("place"),
            value_title=lab.text("value"),
            hover=lab.text("hover"),
            value_range=(0.0, 1.4e4 * highest),
            mark=(step, lab.text("mark", n=f"{step:,}")),
            title=lab.text("corner", n=f"{warmup:,}"),
        ),
        key="training.rate",
    )
    lesson.ask(peak_question(subject))
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
    lab.note("formula")
    lesson.ask(wide(subject))


@lab.asks("peak")
def peak_question(subject: Subject) -> lesson.Number:
    highest = peak(1024, 4000)
    wrong = {"base": 1e4 * peak(512, 4000), "root": 1e4 / (1024 * 4000), "width": 1e4 / 1024**0.5}
    said = lab.asked("peak", wrong=wrong, rate=f"{highest:.2e}")
    return lesson.Number(answer=1e4 * highest, tolerance=0.1, written="{:.2f}".format, **said)


@lab.asks("wide")
def wide(subject: Subject) -> lesson.Choice:
    return lab.choice("wide", ("four", "half", "same", "quarter"), "half")


def _tex(value: float) -> str:
    """Three digits that count, with a power of ten."""
    mantissa, __, exponent = f"{value:.2e}".partition("e")
    return rf"{mantissa} \cdot 10^{{{int(exponent)}}}"
