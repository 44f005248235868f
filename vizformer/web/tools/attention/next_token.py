"""What the model expects after a position that the reader chooses."""

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.web.catalogue import model_cache, subject_cache
from vizformer.web.catalogue.subject import Subject
from vizformer.web.widgets import chart, position_choice
from vizformer.web.widgets.answer_question import ask_why
from vizformer.web.widgets.laboratories import laboratory
from vizformer.web.words import labels
from vizformer.web.words.i18n import _, show_note


@laboratory
def draw_next_token(subject: Subject) -> None:
    if not model_cache.predicts(subject.model):
        show_note(
            "This model's files contain no output layer that predicts tokens, so there is no prediction to show, "
            "only its attention and its arithmetic."
        )
        return
    stack = position_choice.stack(subject)
    st.subheader(_("What comes next?") if stack == "decoder" else _("Which token belongs here?"), anchor=False)
    position = position_choice.choose(subject, key="next")
    best = subject_cache.predictions(subject, position)
    chart.show(
        figures.next_token_bars(
            labels.told_apart([p.token for p in best]),
            np.array([p.probability for p in best], dtype=np.float32),
            title=_("Most probable after position {position}", position=position)
            if stack == "decoder"
            else _("Most probable at position {position}", position=position),
        ),
        key="next.bars",
    )
    ask_why(best[0].token.text, position, key="next.why")
