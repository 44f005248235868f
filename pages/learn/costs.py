"""Lesson 11: what attention costs, how it was made cheaper, what became of the model, and what it reached."""

from vizformer.messages import N_
from vizformer.web.frame import sitemap
from vizformer.web.lessons.costs.calculator import calculator
from vizformer.web.lessons.costs.complexity import complexity
from vizformer.web.lessons.costs.family import family
from vizformer.web.lessons.costs.flash import flash
from vizformer.web.lessons.costs.linear import linear
from vizformer.web.lessons.costs.results import results
from vizformer.web.lessons.costs.sparse import sparse
from vizformer.web.lessons.costs.speed_measurement import measured
from vizformer.web.widgets import lesson


def page() -> None:
    parts = [
        lesson.Part("complexity", N_("Complexity"), complexity),
        lesson.Part("calculator", N_("Calculator"), calculator),
        lesson.Part("flash", N_("Flash"), flash),
        lesson.Part("linear", N_("Linear"), linear),
        lesson.Part("sparse", N_("Sparse"), sparse),
        lesson.Part("measured", N_("Measured"), measured),
        lesson.Part("family", N_("Family"), family, wide=True),
        lesson.Part("results", N_("Results"), results),
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
        "multi-query-attention",
        "grouped-query-attention",
        "mixture-of-experts",
        "rope",
        "rms-norm",
        "swiglu",
        "bleu",
    )
    lesson.show(sitemap.COSTS, parts, terms=terms)


page()
