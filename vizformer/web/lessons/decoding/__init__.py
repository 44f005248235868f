"""The laboratories of the lesson Writing a text, in the order of its parts."""

from vizformer.web.lessons.decoding import cache, drafts, free_running, shift, stopping, translation_score, ways

PARTS = (shift.lab, free_running.lab, ways.lab, stopping.lab, translation_score.lab, cache.lab, drafts.lab)
