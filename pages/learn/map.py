"""The map: the whole model as a drawing with live shapes, and why it is not an RNN."""

from vizformer.web.frame import sitemap
from vizformer.web.lessons import map as map_
from vizformer.web.widgets import lesson


def page() -> None:
    terms = (
        "architecture",
        "encoder",
        "decoder",
        "layer",
        "parameter",
        "model-width",
        "feed-forward",
        "rnn",
        "gru",
        "path-length",
        "receptive-field",
        "dilated-convolution",
        "vanishing-gradient",
        "jacobian",
    )
    lesson.show(sitemap.MAP, map_.PARTS, terms=terms)


page()
