"""Start: the whole model at work on the typed sentence, and one line of doors."""

import streamlit as st

from vizformer.web.frame import progress
from vizformer.web.pages.start import draw_doors, draw_examples, draw_heading, draw_picture, forget_written
from vizformer.web.widgets.map_words import say_pronoun
from vizformer.web.widgets.model_input import subject_box


def page() -> None:
    progress.remember()
    forget_written()
    with st.container(key="start-row"):
        place = st.container(horizontal=True, key="start-field", gap=None, wrap=False)
        with st.container(horizontal=True, key="start-examples", gap="small"):
            draw_examples()
    subject = subject_box(place=place)
    draw_heading(subject)
    if subject is not None:
        draw_picture(subject)
    draw_doors(subject)
    if subject is not None:
        say_pronoun(subject)


page()
