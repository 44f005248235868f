"""The laboratories of the lesson Add & norm, feed-forward, in the order of its parts."""

from vizformer.web.lessons.block import (
    build,
    count,
    dropout,
    feed_forward,
    neurons,
    norm,
    order,
    residual,
    stream,
    width,
)

PARTS = (
    stream.lab,
    norm.lab,
    residual.lab,
    order.lab,
    feed_forward.lab,
    neurons.lab,
    dropout.lab,
    count.lab,
    width.lab,
    build.lab,
)
