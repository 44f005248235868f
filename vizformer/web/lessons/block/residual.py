"""The laboratory Why add: how much of the gradient arrives at the first layer, with the sum and without it."""

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.analysis.training.depth_gradients import DEPTHS, ROWS, WIDTH
from vizformer.components import table
from vizformer.components.table import Number, Row
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.block import computations
from vizformer.web.widgets import chart, lesson
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words.i18n import _

USUAL, ASKED = 8, 32  # layers: in the picture at first, and in the question, which no picture answers
CODE = """depth = {depth}
torch.manual_seed(0)
x, directions = torch.randn(1, {n}, {d}), torch.randn(1, {n}, {d}) / {d} ** 0.5

def gradient(residual):
    layers = [torch.nn.TransformerEncoderLayer({d}, 4, {wide}, dropout=0.0, batch_first=True) for _ in range(depth)]
    y = x
    for layer in layers:
        if residual:  # norm(y + f(y)), twice
            y = layer(y)
        else:  # f(y), twice
            y = layer.self_attn(y, y, y)[0]
            y = layer.linear2(F.relu(layer.linear1(y)))
    ((y * directions).sum() / {n}).backward()
    return layers[0].linear1.weight.grad.norm()

with_sum, without = gradient(True), gradient(False)"""


@laboratory
def residual(subject: Subject) -> None:
    """Untrained stacks of every depth, in four arrangements."""
    st.html(table.style())
    depth = st.select_slider(_("Layers"), DEPTHS, **lesson.setting("block.depth", USUAL, DEPTHS))
    with st.spinner(_("Computing every derivative …"), show_time=False):
        found = computations.by_depth()
    names = {
        "post": _("post-norm: norm(x + f(x))"),
        "pre": _("pre-norm: x + f(norm(x))"),
        "norm_only": _("no sum: norm(f(x))"),
        "bare": _("no sum, no norm: f(x)"),
    }
    picture = figures.line_curves(
        np.array(DEPTHS),
        {names[kind]: values for kind, values in found.gradients.items()},
        place_title=_("layers"),
        value_title=_("gradient at the first layer"),
        hover=_("{name}, {place} layers: {value}"),
        mark=(depth, _("{n} layers", n=depth)),
        height=380,
        title=_("|∂L/∂W₁| of the first layer, before any training"),
    )
    chart.show(
        picture.update_yaxes(type="log", exponentformat="power", dtick=2).update_traces(mode="lines+markers"),
        key="block.depth",
    )
    at = DEPTHS.index(depth)
    rows = [
        Row(
            (
                names[kind],
                Number(found.gradients[kind][at], f"{found.gradients[kind][at]:.2g}"),
                Number(found.likeness[kind][at], f"{found.likeness[kind][at]:.3f}"),
            )
        )
        for kind in found.gradients
    ]
    columns = ("", _("gradient at the first layer"), _("how alike the output rows are (mean cosine)"))
    st.html(table.to_html(columns, rows, caption=_("{n} layers", n=depth)))
    lesson.formula(
        r"\begin{aligned} x' = x + f(x): \quad \frac{\partial L}{\partial x_0} &= \frac{\partial L}{\partial x_N} "
        r"\prod_{l} (I + J_l) \\ x' = f(x): \quad \frac{\partial L}{\partial x_0} &= \frac{\partial L}{\partial x_N} "
        r"\prod_{l} J_l \end{aligned}",
        live=rf"\frac{{{found.gradients['post'][at]:.3g}}}{{{_tex(found.gradients['bare'][at])}}} \approx "
        rf"{_tex(found.times(depth))}",
        code=CODE.format(depth=depth, n=ROWS, d=WIDTH, wide=4 * WIDTH),
    )
    st.caption(
        _(
            "Random weights and {n} random rows of {d} numbers, the same for all models: your sentence plays no part here. "
            "The code does the same with PyTorch's own layers, whose first weights are others.",
            n=ROWS,
            d=WIDTH,
        )
    )
    lesson.ask(depth_question())


def _tex(value: float) -> str:
    mantissa, __, exponent = f"{value:.1e}".partition("e")
    return rf"{mantissa} \cdot 10^{{{int(exponent)}}}"


def depth_question() -> lesson.Number:
    powers = computations.powers_of_ten(ASKED)
    return lesson.Number(
        "block",
        "depth",
        _(
            "{n} layers without sum and norm: how many times smaller is the gradient at the first layer than with both? "
            "Enter the power of ten (3 for a thousand times).",
            n=ASKED,
        ),
        powers,
        _(
            "About {times} times. Every layer multiplies the gradient by what is left of it, and {n} small factors make a "
            "very small one. With the sum there is a way past every factor.",
            times=f"{10**powers:.0e}",
            n=ASKED,
        ),
        tolerance=2,
        written="{:.1f}".format,
    )
