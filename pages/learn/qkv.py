"""Query, key, value: a look-up that is soft, its arithmetic, why three matrices and why the division by sqrt(d_k)."""

from vizformer.messages import N_
from vizformer.web.frame import sitemap
from vizformer.web.lessons.qkv.lookup import lookup
from vizformer.web.lessons.qkv.scaling import scale
from vizformer.web.lessons.qkv.step_by_step import arithmetic, unnamed
from vizformer.web.lessons.qkv.three_matrices import three
from vizformer.web.widgets import lesson


def page() -> None:
    parts = [
        lesson.Part("lookup", N_("A soft look-up"), lookup),
        lesson.Part("arithmetic", N_("Step by step"), arithmetic, wide=True),
        lesson.Part("three", N_("Why three matrices"), three, wide=True),
        lesson.Part("scale", N_("Why ÷ √d"), scale, wide=True),
    ]
    terms = (
        "query",
        "key",
        "value",
        "soft-lookup",
        "attention-score",
        "attention-weight",
        "softmax",
        "temperature",
        "scaled-dot-product-attention",
        "d-k",
    )
    lesson.show(sitemap.QKV, parts, terms=terms, unnamed=unnamed)


page()
