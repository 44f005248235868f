"""The path: from a sentence to a prediction in twelve pictures, with a prediction of the reader's own at each."""

from vizformer.web.tools.start.path.stations import draw_path
from vizformer.web.widgets.model_input import subject_box


def page() -> None:
    subject = subject_box()
    if subject is not None:
        draw_path(subject)


page()
