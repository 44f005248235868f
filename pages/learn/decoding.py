"""Lesson 9: shifted by one, one wrong token, ways of choosing, token by token, the KV cache."""

from vizformer.messages import N_
from vizformer.web.frame import sitemap
from vizformer.web.lessons.decoding.cache import cache
from vizformer.web.lessons.decoding.free_running import free_running
from vizformer.web.lessons.decoding.shift import shift
from vizformer.web.lessons.decoding.stopping import stopping
from vizformer.web.lessons.decoding.ways import ways
from vizformer.web.widgets import lesson


def page() -> None:
    parts = [
        lesson.Part("shift", N_("Shifted by one"), shift),
        lesson.Part("free", N_("One wrong token"), free_running),
        lesson.Part("ways", N_("Ways of choosing"), ways),
        lesson.Part("steps", N_("Token by token"), stopping),
        lesson.Part("cache", N_("The KV cache"), cache),
    ]
    terms = ("autoregressive", "teacher-forcing", "beam-search", "temperature", "perplexity", "kv-cache")
    lesson.show(sitemap.DECODING, parts, terms=terms)


page()
