"""Worksheet: calculations for paper with the tokens of the sentence, the questions of the lessons, versions, and the key."""

from collections.abc import Mapping

from vizformer.web.lessons import (
    block,
    costs,
    cross,
    decoding,
    heads,
    masks,
    mixers,
    positions,
    qkv,
    tokens,
    training,
)
from vizformer.web.lessons import map as map_
from vizformer.web.pages.worksheet import draw_sheet
from vizformer.web.widgets.lab import questions
from vizformer.web.widgets.model_input import subject_box
from vizformer.web.widgets.questions import Registry

_PARTS = tuple(
    lesson.PARTS
    for lesson in (map_, tokens, qkv, heads, masks, positions, block, cross, decoding, training, costs, mixers)
)
LESSONS: Mapping[str, Registry] = {parts[0].lesson: questions(parts) for parts in _PARTS}


def page() -> None:
    subject = subject_box()
    if subject is not None:
        draw_sheet(subject, LESSONS)


page()
