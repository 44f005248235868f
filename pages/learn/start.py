"""Start: one pass of the typed sentence through the model, then three doors."""

from vizformer.web.frame import progress
from vizformer.web.tools.start.doors import draw_doors
from vizformer.web.tools.start.film import draw_film
from vizformer.web.widgets.model_input import subject_box


def page() -> None:
    progress.remember()
    subject = subject_box()
    if subject is not None:
        draw_film(subject)
    draw_doors()


page()
