"""Query, key, value: a look-up that is soft, its arithmetic, why three matrices and why the division by sqrt(d_k)."""

from vizformer.web.frame import sitemap
from vizformer.web.lessons import qkv
from vizformer.web.lessons.qkv.step_by_step import unnamed
from vizformer.web.widgets import lesson


def page() -> None:
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
    lesson.show(sitemap.QKV, qkv.PARTS, terms=terms, unnamed=unnamed)


page()
