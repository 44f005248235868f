"""A laboratory of the lesson Add & norm, feed-forward: post- and pre-norm, their gradients at the start, three trainings."""

import json
from typing import Any

import numpy as np

from vizformer import figures
from vizformer.analysis.training.depth_gradients import WIDTH, untrained
from vizformer.assets import asset
from vizformer.explain import latex
from vizformer.options import NormOrder
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.widgets import chart, lesson
from vizformer.web.widgets.lab import Laboratory
from vizformer.web.words.i18n import Markup

lab = Laboratory("block", "order")
DEPTHS = (6, 12, 24)
ORDERS = ("post", "pre")
TRAINED = (*ORDERS, "warm")
CODE = """post = torch.nn.TransformerEncoderLayer(64, 4, 256, dropout=0.0, batch_first=True, norm_first=False)
pre = torch.nn.TransformerEncoderLayer(64, 4, 256, dropout=0.0, batch_first=True, norm_first=True)
pre.load_state_dict(post.state_dict())  # the same weights
x = 10 * torch.randn(1, 5, 64)
lengths = [layer(x).norm(dim=-1).mean() for layer in (post, pre)]  # set back to 8; left long"""


@cached
def trainings() -> dict[str, Any]:
    """The bundled trainings: see `recipes.norm_order`."""
    found: dict[str, Any] = json.loads(asset("lessons", "block", "norm_order.json").read_text(encoding="utf-8"))
    return found


@cached
def layer_gradients(depth: int) -> dict[str, np.ndarray]:
    """|dL/dW_in| of every layer of an untrained stack, by the order of its norms."""
    return {"post": untrained("post", depth).gradients, "pre": untrained("pre", depth).gradients}


@lab.draws
def draw_norm_order(subject: Subject) -> None:
    notes = trainings()
    recipe = notes["recipe"]
    lesson.ask(norm_order_question(subject))
    chart.show(
        figures.line_curves(
            np.array(notes["updates"]),
            {lab.text(f"trained.{name}", n=recipe["warmup"]): np.array(notes["loss"][name]) for name in TRAINED},
            place_title=lab.text("update"),
            value_title=lab.text("loss"),
            hover=lab.text("hover.update"),
            value_range=(0.0, 1.3 * notes["guessing"]),
            title=lab.text("trainings", n=recipe["n_layers"]),
        ),
        key="block.training",
    )
    command = Markup("`python -m recipes.norm_order norm_order.json`")
    lab.note("same", rate=recipe["learning_rate"], d=recipe["d_model"], command=command)
    depth = lab.buttons("layers", {depth: str(depth) for depth in DEPTHS}, DEPTHS[1])
    found = layer_gradients(depth)
    chart.show(
        figures.line_curves(
            np.arange(1, depth + 1),
            {lab.text(f"orders.{name}"): found[name] for name in ORDERS},
            place_title=lab.text("from_input"),
            value_title=lab.text("gradient"),
            hover=lab.text("hover.layer"),
            title=lab.text("gradients"),
        ).update_yaxes(rangemode="tozero"),
        key="block.layers",
    )
    lesson.formula(
        r"\begin{aligned} \text{post: } x' &= \mathrm{norm}(x + f(x)) \\ \text{pre: } x' &= x + f(\mathrm{norm}(x)) \\ "
        r"g_l &= |\partial L / \partial W_1^{(l)}| \end{aligned}",
        live=r"\begin{aligned} " + r" \\ ".join(_ratio(name, found[name]) for name in ORDERS) + r" \end{aligned}",
        code=CODE,
    )
    own: NormOrder = subject.config.norm_order
    lab.note("computed", form=own, d=WIDTH)


@lab.asks("warmup")
def norm_order_question(subject: Subject) -> lesson.Choice:
    notes = trainings()
    guessing, ends = notes["guessing"], {name: curve[-1] for name, curve in notes["loss"].items()}
    post, pre = (ends[name] < guessing / 2 for name in ORDERS)
    right = {(False, True): "pre", (True, False): "post", (True, True): "both", (False, False): "neither"}[post, pre]
    numbers = {name: f"{loss:.2f}" for name, loss in {**ends, "guess": guessing}.items()}
    values = {"layers": notes["recipe"]["n_layers"], "updates": notes["recipe"]["updates"], **numbers}
    return lab.choice("warmup", ("pre", "post", "both", "neither"), right, **values)


def _ratio(name: str, gradients: np.ndarray) -> str:
    """The last layer's gradient over the first one's."""
    first, last = float(gradients[0]), float(gradients[-1])
    ratio = rf"{latex.number(last, 3)} / {latex.number(first, 3)} = {latex.number(last / first, 2)}"
    return rf"\text{{{name}: }} g_{{{len(gradients)}}} / g_1 &= {ratio}"
