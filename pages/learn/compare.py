"""Check your own: numbers of the reader's own program, step by step against the model's trace for her sentence."""

import streamlit as st

from vizformer.web.tools.compare import computations
from vizformer.web.tools.compare.expected_steps import steps_wanted
from vizformer.web.tools.compare.submission import hand_in
from vizformer.web.widgets.model_input import subject_box
from vizformer.web.words.i18n import _


def page() -> None:
    subject = subject_box()
    if subject is None:
        return
    st.markdown(
        _(
            "Write a Transformer of your own, give it this model's weights and this sentence, and hand in the numbers that "
            "it computes on the way. The page finds the first step that departs from the model's own, and tries known "
            "mistakes on it."
        )
    )
    if (sizes := computations.too_long(subject)) is not None:
        st.info(
            _(
                "The text has {n} tokens; steps are compared for at most {limit}. Choose a shorter one.",
                n=sizes[0],
                limit=sizes[1],
            )
        )
        return
    steps_wanted(subject)
    hand_in(subject)


page()
