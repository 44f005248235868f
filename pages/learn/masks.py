"""Masks: who may look at whom; painted by hand, written in four ways, got wrong in four ways, and leakage measured."""

from vizformer.messages import N_
from vizformer.web.frame import sitemap
from vizformer.web.lessons.masks.leakage import leakage
from vizformer.web.lessons.masks.mask_painting import painted_by_hand
from vizformer.web.lessons.masks.mistakes import four_mistakes
from vizformer.web.lessons.masks.notations import four_notations
from vizformer.web.lessons.masks.six_masks import six_masks
from vizformer.web.widgets import lesson


def page() -> None:
    parts = [
        lesson.Part("kinds", N_("Six masks"), six_masks, wide=True),
        lesson.Part("paint", N_("Paint one"), painted_by_hand, wide=True),
        lesson.Part("conventions", N_("Four notations"), four_notations, wide=True),
        lesson.Part("mistakes", N_("Four mistakes"), four_mistakes, wide=True),
        lesson.Part("leak", N_("Leakage"), leakage, wide=True),
    ]
    terms = (
        "mask",
        "additive-mask",
        "causal-mask",
        "padding",
        "cross-attention",
        "prefix-mask",
        "sliding-window",
        "bigbird",
        "softmax",
        "leakage",
    )
    lesson.show(sitemap.MASKS, parts, terms=terms)


page()
