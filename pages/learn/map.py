"""Lesson 1: the whole model as a drawing with live shapes, and why it is not an RNN."""

from vizformer.messages import N_
from vizformer.web.frame import sitemap
from vizformer.web.lessons.map import drawing, gru, layer_cost, path_length
from vizformer.web.widgets import lesson
from vizformer.web.widgets.lesson import Part


def page() -> None:
    lesson.show(
        sitemap.MAP,
        [
            Part("drawing", N_("The drawing"), drawing.drawing, wide=True),
            Part("rnn", N_("Why not an RNN"), path_length.rnn),
            Part("cost", N_("What a layer costs"), layer_cost.cost),
            Part("gru", N_("A GRU beside it"), gru.gru),
        ],
        terms=(
            "architecture",
            "encoder",
            "decoder",
            "layer",
            "parameter",
            "model-width",
            "residual-stream",
            "feed-forward",
            "self-attention",
            "rnn",
            "gru",
            "path-length",
            "dilated-convolution",
            "vanishing-gradient",
            "jacobian",
        ),
    )


page()
