"""Find the error: nine programs with one wrong line each, as they are copied from tutorial to tutorial."""

from vizformer.web.frame import sitemap
from vizformer.web.lessons import errors
from vizformer.web.widgets import lesson


def page() -> None:
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
    lesson.show(sitemap.ERRORS, errors.PARTS, terms=terms)


page()
