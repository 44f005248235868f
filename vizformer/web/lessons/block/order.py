"""The laboratory Post/pre: the two orders, their gradients at the start, and two small trainings."""

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.analysis.training.depth_gradients import WIDTH
from vizformer.explain import latex
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.block import computations
from vizformer.web.widgets import chart, lesson
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words.i18n import _

DEPTHS = (6, 12, 24)
CODE = """post = torch.nn.TransformerEncoderLayer(64, 4, 256, dropout=0.0, batch_first=True, norm_first=False)
pre = torch.nn.TransformerEncoderLayer(64, 4, 256, dropout=0.0, batch_first=True, norm_first=True)
pre.load_state_dict(post.state_dict())  # the same weights
x = 10 * torch.randn(1, 5, 64)
lengths = [layer(x).norm(dim=-1).mean() for layer in (post, pre)]  # set back to 8; left long"""


@laboratory
def order(subject: Subject) -> None:
    """Post-norm beside pre-norm."""
    notes = computations.norm_order_training()
    recipe, curves = notes["recipe"], notes["loss"]
    names = {
        "post": _("post-norm, no warm-up"),
        "pre": _("pre-norm, no warm-up"),
        "warm": _("post-norm, warm-up over {n} updates", n=recipe["warmup"]),
    }
    lesson.ask(warmup_question())
    chart.show(
        figures.line_curves(
            np.array(notes["updates"]),
            {names[name]: np.array(curve) for name, curve in curves.items()},
            place_title=_("update"),
            value_title=_("loss (nats per symbol)"),
            hover=_("{name}, update {place}: {value}"),
            value_range=(0.0, 1.3 * notes["guessing"]),
            height=340,
            title=_("Three trainings of {n} layers: sorting digits", n=recipe["n_layers"]),
        ),
        key="block.training",
    )
    st.caption(
        _(
            "The same seed, examples and learning rate ({rate}, Adam) for all; decoder-only, d = {d}. Measured once and "
            "bundled; in a checkout this makes them again: {command}",
            rate=recipe["learning_rate"],
            d=recipe["d_model"],
            command="`python -m recipes.norm_order norm_order.json`",
        )
    )
    depth = st.segmented_control(
        _("Layers"), DEPTHS, required=True, **lesson.setting("block.layers", DEPTHS[1], DEPTHS)
    )
    depth = depth or DEPTHS[1]
    found = computations.layer_gradients(depth)
    chart.show(
        figures.line_curves(
            np.arange(1, depth + 1),
            {_("post-norm"): found["post"], _("pre-norm"): found["pre"]},
            place_title=_("layer, from the input"),
            value_title=_("gradient"),
            hover=_("{name}, layer {place}: {value}"),
            height=300,
            title=_("|∂L/∂W₁| by layer, before any training"),
        ).update_yaxes(rangemode="tozero"),
        key="block.layers",
    )
    own = subject.config.norm_order
    lesson.formula(
        r"\begin{aligned} \text{post: } x' &= \mathrm{norm}(x + f(x)) \\ \text{pre: } x' &= x + f(\mathrm{norm}(x)) \\ "
        r"g_l &= |\partial L / \partial W_1^{(l)}| \end{aligned}",
        live=r"\begin{aligned} "
        + r" \\ ".join(_ratio(name, found[name]) for name in ("post", "pre"))
        + r" \end{aligned}",
        code=CODE,
    )
    st.caption(
        _("Computed on random rows of {d} numbers. The model of this page is post-norm.", d=WIDTH)
        if own == "post"
        else _("Computed on random rows of {d} numbers. The model of this page is pre-norm.", d=WIDTH)
        if own == "pre"
        else _(
            "Computed on random rows of {d} numbers. The model of this page is neither: it normalises what a sublayer has "
            "found before it is added.",
            d=WIDTH,
        )
        if own == "output"
        else _("Computed on random rows of {d} numbers. The model of this page has no norms in its layers.", d=WIDTH)
        if own == "none"
        else _(
            "Computed on random rows of {d} numbers. The model of this page is pre-norm, and also normalises what a "
            "sublayer has found before it is added.",
            d=WIDTH,
        )
    )


def _ratio(name: str, gradients: np.ndarray) -> str:
    """The last layer's gradient over the first one's."""
    first, last = float(gradients[0]), float(gradients[-1])
    n = len(gradients)
    ratio = rf"{latex.number(last, 3)} / {latex.number(first, 3)} = {latex.number(last / first, 2)}"
    return rf"\text{{{name}: }} g_{{{n}}} / g_1 &= {ratio}"


def warmup_question() -> lesson.Choice:
    """Which of the two orders learns without a warm-up?"""
    notes = computations.norm_order_training()
    recipe, curves, guessing = notes["recipe"], notes["loss"], notes["guessing"]
    learned = [curves[name][-1] < guessing / 2 for name in ("post", "pre")]
    answer = {(False, True): 0, (True, False): 1, (True, True): 2, (False, False): 3}[learned[0], learned[1]]
    return lesson.Choice(
        "block",
        "warmup",
        _(
            "{n} layers are trained with a full learning rate from the first update, no warm-up. Which of the two orders "
            "learns to sort?",
            n=recipe["n_layers"],
        ),
        [_("only pre-norm"), _("only post-norm"), _("both"), _("neither")],
        answer,
        _(
            "After {n} updates the loss is {post} with post-norm and {pre} with pre-norm; guessing has about {guess}. With "
            "a warm-up post-norm gets to {warm}.",
            n=recipe["updates"],
            post=f"{curves['post'][-1]:.2f}",
            pre=f"{curves['pre'][-1]:.2f}",
            guess=f"{guessing:.2f}",
            warm=f"{curves['warm'][-1]:.2f}",
        ),
    )
