"""Many heads: split, attend, mix; all heads of the sentence; whom a pronoun means; what heads cost; shared keys."""

from vizformer.messages import N_
from vizformer.web.frame import sitemap
from vizformer.web.lessons.heads.all_heads import every
from vizformer.web.lessons.heads.cost import cost
from vizformer.web.lessons.heads.reference import reference
from vizformer.web.lessons.heads.shared_keys_and_values import groups
from vizformer.web.lessons.heads.split import split
from vizformer.web.widgets import lesson


def page() -> None:
    parts = [
        lesson.Part("split", N_("Split, attend, mix"), split, wide=True),
        lesson.Part("all", N_("All heads"), every, wide=True),
        lesson.Part("reference", N_("Who is “it”?"), reference, wide=True),
        lesson.Part("cost", N_("What heads cost"), cost),
        lesson.Part("groups", N_("Shared keys and values"), groups),
    ]
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
    lesson.show(sitemap.HEADS, parts, terms=terms)


page()
