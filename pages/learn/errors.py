"""Lesson 12: nine programs with one wrong line each, as they are copied from tutorial to tutorial."""

from vizformer.messages import N_
from vizformer.web.frame import sitemap
from vizformer.web.lessons.errors.after import after
from vizformer.web.lessons.errors.cache import cache
from vizformer.web.lessons.errors.count import count
from vizformer.web.lessons.errors.dropout import dropout
from vizformer.web.lessons.errors.embedding import embedding
from vizformer.web.lessons.errors.join import join
from vizformer.web.lessons.errors.scale import scale
from vizformer.web.lessons.errors.total import total
from vizformer.web.lessons.errors.waves import waves
from vizformer.web.widgets import lesson


def page() -> None:
    parts = [
        lesson.Part("dropout", N_("A feed-forward"), dropout),
        lesson.Part("scale", N_("One head"), scale),
        lesson.Part("waves", N_("Positions"), waves),
        lesson.Part("total", N_("Softmax"), total),
        lesson.Part("count", N_("Parameters"), count),
        lesson.Part("after", N_("Causal mask"), after),
        lesson.Part("cache", N_("A new token"), cache),
        lesson.Part("embedding", N_("Embedding"), embedding),
        lesson.Part("join", N_("Many heads"), join),
    ]
    terms = (
        "dropout",
        "scaled-dot-product-attention",
        "d-k",
        "wavelength",
        "softmax",
        "causal-mask",
        "kv-cache",
        "embedding",
        "concatenation",
    )
    lesson.show(sitemap.ERRORS, parts, terms=terms)


page()
