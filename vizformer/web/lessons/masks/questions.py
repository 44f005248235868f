"""The questions of the lesson Masks."""

from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.masks import (
    computations,
    leakage,
    mask_painting,
    mistakes,
    notations,
    six_masks,
)
from vizformer.web.lessons.masks.which_attention import causal_on, tokens
from vizformer.web.widgets.questions import Choice, Registry


def _count(subject: Subject) -> Choice:
    return six_masks.count_question(subject, len(tokens(subject, causal_on(subject))[0]))


def _leak(subject: Subject) -> Choice:
    return leakage.leak_question(subject, "decoder" if "decoder" in subject.trace.tokens else "encoder")


QUESTIONS: Registry = {
    "count": _count,
    "block": lambda subject: mask_painting.block_question(subject, causal_on(subject)),
    "notation": lambda subject: notations.notation_question(subject, computations.causal_head(subject, 0, 0)),
    "sum": lambda subject: mistakes.sum_question(subject, computations.causal_head(subject, 0, 0)),
    "leak": _leak,
}
