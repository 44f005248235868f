"""The laboratories of the lesson Positional encoding, in the order of its parts."""

from vizformer.web.lessons.positions import clock, distance, order, past_trained_length, place_function, schemes, waves

PARTS = (waves.lab, clock.lab, distance.lab, order.lab, place_function.lab, schemes.lab, past_trained_length.lab)
