"""The laboratories of the lesson Add & norm, feed-forward, in the order of its parts."""

from vizformer.web.lessons.block import (
    count,
    feed_forward,
    norm,
    order,
    residual,
    stream,
)

PARTS = (
    stream.lab,
    norm.lab,
    residual.lab,
    order.lab,
    feed_forward.lab,
    count.lab,
)
