"""Encoder meets decoder: three attentions, one memory, alignment, a changed memory, and one vector for a whole text."""

from vizformer.messages import N_
from vizformer.web.frame import sitemap
from vizformer.web.lessons.cross.alignment import alignment
from vizformer.web.lessons.cross.bottleneck import bottleneck
from vizformer.web.lessons.cross.changed_memory import without
from vizformer.web.lessons.cross.memory import memory
from vizformer.web.lessons.cross.other_model import has_two_stacks
from vizformer.web.lessons.cross.three_attentions import three
from vizformer.web.widgets import lesson


def page() -> None:
    parts = [
        lesson.Part("three", N_("Three attentions"), three),
        lesson.Part("memory", N_("One memory"), memory),
        lesson.Part("alignment", N_("Alignment"), alignment),
        lesson.Part("without", N_("Without the memory"), without),
        lesson.Part("bottleneck", N_("One vector for all"), bottleneck),
    ]
    terms = (
        "encoder",
        "decoder",
        "cross-attention",
        "memory",
        "alignment",
        "causal-mask",
        "padding",
        "residual-stream",
        "gru",
        "bottleneck",
    )
    lesson.show(sitemap.CROSS, parts, terms=terms, usable=has_two_stacks)


page()
