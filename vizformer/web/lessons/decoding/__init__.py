"""The laboratories of the lesson Decoding: generating text, in the order of its parts."""

from vizformer.web.lessons.decoding import cache, free_running, shift, translation_score, ways

PARTS = (
    shift.lab,
    free_running.lab,
    ways.lab,
    translation_score.lab,
    cache.lab,
)
