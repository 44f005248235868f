"""Costs, variants, results: what attention costs, how it was made cheaper, what became of the model, and what it reached."""

from vizformer.web.frame import sitemap
from vizformer.web.lessons import costs
from vizformer.web.widgets import lesson


def page() -> None:
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
    lesson.show(sitemap.COSTS, costs.PARTS, terms=terms)


page()
