"""Attention: every head for the typed sentence, the translation, and what the model expects next."""

from vizformer.web.catalogue.subject import Subject
from vizformer.web.pages.attention.choices import above, draw_next_token
from vizformer.web.pages.attention.heads import draw_heads
from vizformer.web.widgets.laboratories import laboratory
from vizformer.web.widgets.model_input import subject_box
from vizformer.web.widgets.number_editor import what_changed
from vizformer.web.words.errors import guarded


def page() -> None:
    subject = subject_box()
    if subject is not None:
        pictures(subject)


@laboratory
def pictures(subject: Subject) -> None:
    above(subject)
    if subject.edited:
        guarded()(what_changed)(subject)
    draw_heads(subject)
    draw_next_token(subject)


page()
