"""Masks: who may look at whom; painted by hand, written in four ways, got wrong in four ways, and leakage measured."""

from vizformer.web.frame import sitemap
from vizformer.web.lessons import masks
from vizformer.web.widgets import lesson


def page() -> None:
    terms = (
        "mask",
        "additive-mask",
        "causal-mask",
        "padding",
        "cross-attention",
        "prefix-mask",
        "sliding-window",
        "bigbird",
        "leakage",
    )
    lesson.show(sitemap.MASKS, masks.PARTS, terms=terms)


page()
