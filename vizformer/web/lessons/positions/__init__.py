"""The laboratories of the lesson Positions, in the order of its parts."""

from vizformer.web.lessons.positions import (
    clock,
    distance,
    order,
    past_trained_length,
    place_function,
    schemes,
    waves,
)

_IN_ORDER = (waves, clock, distance, order, place_function, schemes, past_trained_length)
PARTS = tuple(part.lab for part in _IN_ORDER)
