"""Multi-head attention: split, attend, concatenate; all heads; whom a pronoun means; shared keys."""

from vizformer.web.frame import sitemap
from vizformer.web.lessons import heads
from vizformer.web.widgets import lesson


def page() -> None:
    terms = (
        "head",
        "d-k",
        "multi-head-attention",
        "concatenation",
        "output-projection",
        "head-contribution",
        "effective-keys",
        "coreference",
        "grouped-query-attention",
        "multi-query-attention",
        "kv-cache",
    )
    lesson.show(sitemap.HEADS, heads.PARTS, terms=terms)


page()
