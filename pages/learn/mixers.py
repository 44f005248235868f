"""After 2017: other ways of mixing tokens than the softmax over all of them, by hand and for the typed sentence."""

from vizformer.web.frame import sitemap
from vizformer.web.lessons import mixers
from vizformer.web.widgets import lesson


def page() -> None:
    terms = (
        "attention-sink",
        "latent-attention",
        "delta-rule",
        "state-space-layer",
        "state",
        "kv-cache",
    )
    lesson.show(sitemap.MIXERS, mixers.PARTS, terms=terms)


page()
