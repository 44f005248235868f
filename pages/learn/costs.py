"""Lesson 11: what attention costs, how it was made cheaper, what became of the model, and what it reached."""

from vizformer.messages import N_
from vizformer.web.frame import sitemap
from vizformer.web.lessons.costs.calculator import calculator
from vizformer.web.lessons.costs.complexity import complexity
from vizformer.web.lessons.costs.flash import flash
from vizformer.web.lessons.costs.linear import linear
from vizformer.web.lessons.costs.sparse import sparse
from vizformer.web.widgets import lesson


def page() -> None:
    parts = [
        lesson.Part("complexity", N_("Complexity"), complexity),
        lesson.Part("calculator", N_("Calculator"), calculator),
        lesson.Part("flash", N_("FlashAttention"), flash, wide=True),
        lesson.Part("linear", N_("Linear attention"), linear, wide=True),
        lesson.Part("sparse", N_("Sparse attention"), sparse, wide=True),
    ]
    terms = (
        "complexity",
        "path-length",
        "flops",
        "kv-cache",
        "online-softmax",
        "linear-attention",
        "sparse-attention",
        "sliding-window",
    )
    lesson.show(sitemap.COSTS, parts, terms=terms)


page()
