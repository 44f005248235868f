"""The laboratory Step by step: one head and one query, every number of it, with numbers that can be set by hand."""

import math

from vizformer import analysis
from vizformer.analysis import Kind, kinds
from vizformer.web.catalogue import subject_cache
from vizformer.web.catalogue.subject import Subject
from vizformer.web.catalogue.subject_functions import of_trace
from vizformer.web.link import state
from vizformer.web.link.view import View
from vizformer.web.widgets import attention_selector, lesson, map_words
from vizformer.web.widgets.lab import Laboratory, aside
from vizformer.web.widgets.laboratories import laboratory
from vizformer.web.widgets.number_editor import head_editor, what_changed
from vizformer.web.widgets.step_view import walk
from vizformer.web.words import labels
from vizformer.web.words.errors import guarded

lab = Laboratory("qkv", "arithmetic", wide=True)
PLACE = ("kind", "layer", "head", "query", "step")


ratio = of_trace(analysis.ratio_question)


def unnamed(view: View) -> str:
    """The part of a link without one: who has chosen a place in the model wants to see its numbers."""
    usual = View()
    return "arithmetic" if any(getattr(view, name) != getattr(usual, name) for name in PLACE) else "lookup"


@lab.draws
def draw_step_by_step(subject: Subject) -> None:
    """The steps, so near to the top that a step further is seen, and below them what sets numbers by hand."""
    why = attention_selector.choose(subject)
    _steps(subject)
    aside(why)
    _editing(subject)
    lesson.ask(step_by_step_question(subject, state.view().kind))


@lab.asks("ratio")
def step_by_step_question(subject: Subject, kind: Kind | None = None) -> lesson.Number | None:
    kind = kind or kinds(subject.trace)[0]
    if (asked := ratio(subject, kind)) is None:  # no query has two keys to choose from
        return None
    keys = labels.numbered(subject.trace.tokens[labels.stacks(kind)[1]])
    high, low = (f"{score:.2f}".replace("-", "−") for score in asked.scores)
    first, second = asked.scores
    gap = first - second
    wrong = {"gap": gap, "turned": math.exp(-gap), "quotient": first / second if second else 0.0}
    said = lab.asked(
        "ratio",
        subject,
        kind,
        wrong=wrong,
        layer=asked.layer,
        head=asked.head,
        query=map_words.numbered(subject, kind)[asked.query],
        first=keys[asked.first],
        second=keys[asked.second],
        high=high,
        low=low,
        ratio=f"{asked.ratio:.2f}",
    )
    tolerance = lesson.near(asked.ratio, 0.1, least=0.1)
    return lesson.Number(answer=asked.ratio, tolerance=tolerance, written="{:.2f}".format, **said)


@laboratory
def _steps(subject: Subject) -> None:
    """The steps, one at a time or all at once."""
    view = state.view()
    if unnamed(state.linked()) != "arithmetic":
        state.update(**lesson.held())  # back at the first step of the first head: the link must still lead here
    chosen = attention_selector.site(), view.head, attention_selector.query(subject)
    keys = labels.texts(subject.trace.tokens[labels.stacks(view.kind)[1]])
    before = subject_cache.steps(subject.unedited, *chosen) if subject.edited else None
    walk(subject_cache.steps(subject, *chosen), lambda step: {"keys": keys}, before)


@guarded()
def _editing(subject: Subject) -> None:
    head_editor(subject, attention_selector.site())
    what_changed(subject)
