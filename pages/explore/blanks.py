"""Fill in the blank: hide words of the sentence; what the model puts there, and where it looks."""

from vizformer.web.pages.blanks import blank, draw_other_model
from vizformer.web.widgets import model_suggestions
from vizformer.web.widgets.model_input import subject_box


def page() -> None:
    subject = subject_box(model_suggestions.fills_blanks)
    if subject is None:
        return
    if not model_suggestions.fills_blanks(subject.model):
        draw_other_model(subject.model)
        return
    blank(subject)


page()
