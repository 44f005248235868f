"""The laboratories of the lesson Writing a text, in the order of its parts."""

from vizformer.web.lessons.decoding import cache, free_running, shift, stopping, ways

PARTS = (shift.lab, free_running.lab, ways.lab, stopping.lab, cache.lab)
