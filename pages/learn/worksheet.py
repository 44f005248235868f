"""Worksheet: calculations for paper with the tokens of the sentence, the questions of the lessons, versions, and the key."""

from collections.abc import Mapping

from vizformer.web.frame import sitemap
from vizformer.web.lessons import block, costs, cross, decoding, errors, heads, masks, positions, qkv, tokens, training
from vizformer.web.lessons import map as map_
from vizformer.web.tools.worksheet.sheet import sheet
from vizformer.web.widgets.lab import questions
from vizformer.web.widgets.model_input import subject_box
from vizformer.web.widgets.questions import Registry

LESSONS: Mapping[str, Registry] = {
    sitemap.MAP.url: questions(map_.PARTS),
    sitemap.TOKENS.url: questions(tokens.PARTS),
    sitemap.POSITIONS.url: questions(positions.PARTS),
    sitemap.QKV.url: questions(qkv.PARTS),
    sitemap.HEADS.url: questions(heads.PARTS),
    sitemap.MASKS.url: questions(masks.PARTS),
    sitemap.BLOCK.url: questions(block.PARTS),
    sitemap.CROSS.url: questions(cross.PARTS),
    sitemap.DECODING.url: questions(decoding.PARTS),
    sitemap.TRAINING.url: questions(training.PARTS),
    sitemap.COSTS.url: questions(costs.PARTS),
    sitemap.ERRORS.url: questions(errors.PARTS),
}


def page() -> None:
    subject = subject_box()
    if subject is not None:
        sheet(subject, LESSONS)


page()
