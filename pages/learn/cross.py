"""Cross-attention: three attentions, one memory, alignment, a changed memory, and one vector for a whole text."""

from vizformer.web.frame import sitemap
from vizformer.web.lessons import cross
from vizformer.web.lessons.cross.surroundings import has_two_stacks
from vizformer.web.widgets import lesson


def page() -> None:
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
    lesson.show(sitemap.CROSS, cross.PARTS, terms=terms, usable=has_two_stacks)


page()
