"""Add & norm, feed-forward: the running sum, the norm, why there is a sum, and the network that follows."""

from vizformer.web.frame import sitemap
from vizformer.web.lessons import block
from vizformer.web.widgets import lesson


def page() -> None:
    terms = (
        "residual-stream",
        "hidden-state",
        "residual-connection",
        "layer-norm",
        "rms-norm",
        "batch-norm",
        "post-norm",
        "pre-norm",
        "warm-up",
        "feed-forward",
        "activation",
        "swiglu",
        "neuron",
        "dropout",
    )
    lesson.show(sitemap.BLOCK, block.PARTS, terms=terms)


page()
