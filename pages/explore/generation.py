"""Generation: a text token by token, what each token was chosen from, and what it costs."""

from vizformer.web.catalogue.subject import Subject
from vizformer.web.pages.generation.beam_search import beam
from vizformer.web.pages.generation.settings import choose
from vizformer.web.pages.generation.step_by_step import draw_other_model, written
from vizformer.web.widgets import model_suggestions
from vizformer.web.widgets.laboratories import laboratory
from vizformer.web.widgets.model_input import subject_box
from vizformer.web.words.i18n import show_note


def page() -> None:
    subject = subject_box(model_suggestions.writes)
    if subject is None:
        return
    if not model_suggestions.writes(subject.model):
        draw_other_model(subject.model)
        return
    if subject.target.strip():
        show_note("The output begins with the target above; clear the target to see the model's own output.")
    pictures(subject)


@laboratory
def pictures(subject: Subject) -> None:
    settings = choose()
    if settings.strategy == "beam":
        beam(subject, settings)
    else:
        written(subject, settings)


page()
