"""The laboratories of the lesson Training, in the order of its parts."""

from vizformer.web.lessons.training import (
    adam,
    classifier,
    dropout,
    gradient,
    left_out,
    loss,
    rate,
    sharing,
    smoothing,
)

_IN_ORDER = (loss, smoothing, rate, adam, gradient, left_out, dropout, sharing, classifier)
PARTS = tuple(part.lab for part in _IN_ORDER)
