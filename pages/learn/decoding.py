"""Decoding: generating text: shifted right, teacher forcing, ways of choosing, BLEU by hand, the KV cache."""

from vizformer.web.frame import sitemap
from vizformer.web.lessons import decoding
from vizformer.web.widgets import lesson


def page() -> None:
    terms = (
        "autoregressive",
        "start-token",
        "shifted-right",
        "teacher-forcing",
        "exposure-bias",
        "logit",
        "beam-search",
        "temperature",
        "perplexity",
        "bleu",
        "kv-cache",
    )
    lesson.show(sitemap.DECODING, decoding.PARTS, terms=terms)


page()
