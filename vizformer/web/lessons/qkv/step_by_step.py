"""The laboratory Step by step: one head and one query, every number of it, with numbers that can be set by hand."""

from vizformer.web.catalogue import subject_cache
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link import state
from vizformer.web.link.view import View
from vizformer.web.widgets import attention_selector, lesson
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.widgets.number_editor import head_editor, what_changed
from vizformer.web.widgets.step_view import walk
from vizformer.web.words import labels
from vizformer.web.words.errors import guarded

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
