"""Check your own: numbers of the reader's own program, step by step against the model's trace for her sentence."""

from vizformer.web.pages import compare
from vizformer.web.pages.compare import hand_in
from vizformer.web.widgets.model_input import subject_box
from vizformer.web.words.i18n import show_info


def page() -> None:
    subject = subject_box()
    if subject is None:
        return
    if (sizes := compare.too_long(subject)) is not None:
        show_info(
            "The text has {n} tokens; steps are compared for at most {limit}. Choose a shorter one.",
            n=sizes[0],
            limit=sizes[1],
        )
        return
    hand_in(subject)


page()
