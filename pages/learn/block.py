"""Add & norm, feed-forward: the running sum, the norm, why there is a sum, and the network that follows."""

from vizformer.messages import N_
from vizformer.web.frame import sitemap
from vizformer.web.lessons.block.build import build
from vizformer.web.lessons.block.count import count
from vizformer.web.lessons.block.dropout import dropout
from vizformer.web.lessons.block.feed_forward import feed_forward
from vizformer.web.lessons.block.neurons import neurons
from vizformer.web.lessons.block.norm import norm
from vizformer.web.lessons.block.order import order
from vizformer.web.lessons.block.residual import residual
from vizformer.web.lessons.block.stream import stream
from vizformer.web.widgets import lesson


def page() -> None:
    parts = [
        lesson.Part("stream", N_("The sum"), stream),
        lesson.Part("norm", N_("Norm"), norm),
        lesson.Part("residual", N_("Why add"), residual),
        lesson.Part("order", N_("Post/pre"), order),
        lesson.Part("ffn", N_("Feed-forward"), feed_forward),
        lesson.Part("neurons", N_("Neurons"), neurons),
        lesson.Part("dropout", N_("Dropout"), dropout),
        lesson.Part("count", N_("Counting"), count),
        lesson.Part("build", N_("By hand"), build),
    ]
    terms = (
        "residual-stream",
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
    lesson.show(sitemap.BLOCK, parts, terms=terms)


page()
