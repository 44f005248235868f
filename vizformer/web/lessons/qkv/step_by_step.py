"""The laboratory Step by step: one head and one query, every number of it, with numbers that can be set by hand."""

from vizformer.analysis import Kind
from vizformer.web.catalogue import subject_cache
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.qkv import computations
from vizformer.web.link import state
from vizformer.web.link.view import View
from vizformer.web.widgets import attention_selector, lesson, row_names
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.widgets.number_editor import head_editor, what_changed
from vizformer.web.widgets.step_view import walk
from vizformer.web.words import labels
from vizformer.web.words.errors import guarded
from vizformer.web.words.i18n import _

PLACE = ("kind", "layer", "head", "query", "step")


def unnamed(view: View) -> str:
    """The part of a link without one: who has chosen a place in the model wants to see its numbers."""
    usual = View()
    return "arithmetic" if any(getattr(view, name) != getattr(usual, name) for name in PLACE) else "lookup"


@laboratory
def arithmetic(subject: Subject) -> None:
    attention_selector.choose(subject)
    editing(subject)
    steps(subject)
    lesson.ask(ratio_question(subject, state.view().kind))


@guarded()
def editing(subject: Subject) -> None:
    """Numbers set by hand, and what they change."""
    head_editor(subject, attention_selector.site())
    what_changed(subject)


@laboratory
def steps(subject: Subject) -> None:
    """The steps, one at a time or all at once."""
    view = state.view()
    if unnamed(view) != "arithmetic":
        state.update(**lesson.held())  # back at the first step of the first head: the link must still lead here
    chosen = attention_selector.site(), view.head, attention_selector.query(subject)
    found = subject_cache.steps(subject, *chosen)
    key_tokens = labels.texts(subject.trace.tokens[labels.stacks(view.kind)[1]])
    before = subject_cache.steps(subject.unedited, *chosen) if subject.edited else None
    walk(found, lambda step: {"keys": key_tokens}, before)


def ratio_question(subject: Subject, kind: Kind) -> lesson.Number | None:
    """What does softmax make of the gap between two scores?"""
    asked = computations.ratio_question(subject, kind)
    if asked is None:  # no query has two keys to choose from
        return None
    keys = labels.numbered(subject.trace.tokens[labels.stacks(kind)[1]])
    high, low = (f"{score:.2f}".replace("-", "−") for score in asked.scores)
    return lesson.Number(
        "qkv",
        "ratio",
        _(
            "Layer {layer}, head {head}, query “{query}”: before the softmax the key “{first}” has the score {high} and the "
            "key “{second}” {low}. How many times as large is the weight of the first?",
            layer=asked.layer,
            head=asked.head,
            query=row_names.numbered(subject, kind)[asked.query],
            first=keys[asked.first],
            second=keys[asked.second],
            high=high,
            low=low,
        ),
        asked.ratio,
        _(
            "Softmax makes a ratio of a gap: e^({high} − ({low})) = {ratio}. What the other keys score plays no part: the "
            "denominator is the same for both.",
            high=high,
            low=low,
            ratio=f"{asked.ratio:.2f}",
        ),
        tolerance=lesson.near(asked.ratio, 0.1, least=0.1),
        written="{:.2f}".format,
        about=f"{subject} {kind}",
    )
