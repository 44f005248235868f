"""A laboratory of the lesson Add & norm, feed-forward: the gradient at the first layer, with the sum and without it."""

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.analysis.training import depth_gradients
from vizformer.analysis.training.depth_gradients import DEPTHS, ROWS, WIDTH
from vizformer.components import table
from vizformer.components.table import Row, numbers
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.widgets import chart, lesson
from vizformer.web.widgets.lab import Laboratory

lab = Laboratory("block", "residual")
USUAL, ASKED = 8, 32  # layers: in the picture at first, and in the question, which no picture answers
KINDS = ("post", "pre", "norm_only", "bare")
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


by_depth = cached(depth_gradients.by_depth)
powers_of_ten = cached(depth_gradients.powers_of_ten)


@lab.draws
def draw_residual_connection(subject: Subject) -> None:
    st.html(table.style())
    depth = lab.steps("depth", DEPTHS, USUAL)
    with st.spinner(lab.text("computing"), show_time=False):
        found = by_depth()
    names, layers = lab.texts("kinds", KINDS), lab.text("layers", n=depth)
    picture = figures.line_curves(
        np.array(DEPTHS),
        {names[kind]: values for kind, values in found.gradients.items()},
        place_title=lab.text("axes.layers"),
        value_title=lab.text("axes.gradient"),
        hover=lab.text("hover"),
        mark=(depth, layers),
        title=lab.text("picture"),
    )
    chart.show(
        picture.update_yaxes(type="log", exponentformat="power", dtick=2).update_traces(mode="lines+markers"),
        key="block.depth",
    )
    at = DEPTHS.index(depth)
    rows = [
        Row(names[kind], *numbers(".2g", values[at]), *numbers(".3f", found.likeness[kind][at]))
        for kind, values in found.gradients.items()
    ]
    st.html(table.to_html(("", lab.text("axes.gradient"), lab.text("alike")), rows, caption=layers))
    lesson.formula(
        r"\begin{aligned} x' = x + f(x): \quad \frac{\partial L}{\partial x_0} &= \frac{\partial L}{\partial x_N} "
        r"\prod_{l} (I + J_l) \\ x' = f(x): \quad \frac{\partial L}{\partial x_0} &= \frac{\partial L}{\partial x_N} "
        r"\prod_{l} J_l \end{aligned}",
        live=rf"\frac{{{found.gradients['post'][at]:.3g}}}{{{_tex(found.gradients['bare'][at])}}} \approx "
        rf"{_tex(found.times(depth))}",
        code=CODE.format(depth=depth, n=ROWS, d=WIDTH, wide=4 * WIDTH),
    )
    lab.note("random", n=ROWS, d=WIDTH)
    lesson.ask(residual_connection_question(subject))


@lab.asks("depth")
def residual_connection_question(subject: Subject) -> lesson.Number:
    powers = powers_of_ten(ASKED)
    wrong = {"one": powers / ASKED, "times": 10**powers}
    said = lab.asked("depth", wrong=wrong, times=f"{10**powers:.0e}", n=ASKED)
    return lesson.Number(answer=powers, tolerance=2, written="{:.1f}".format, **said)


def _tex(value: float) -> str:
    mantissa, __, exponent = f"{value:.1e}".partition("e")
    return rf"{mantissa} \cdot 10^{{{int(exponent)}}}"
