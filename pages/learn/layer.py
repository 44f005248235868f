"""A layer by hand: every matrix of a whole layer, for the typed sentence or for the lectures' toy."""

import streamlit as st

from vizformer.web.catalogue.subject import Subject
from vizformer.web.link import state
from vizformer.web.pages.layer import choose_layer, draw_sentence, draw_toy
from vizformer.web.widgets.laboratories import laboratory
from vizformer.web.widgets.model_input import subject_box
from vizformer.web.words.i18n import _


def page() -> None:
    names = {"sentence": _("Your sentence"), "toy": _("The toy example of the lectures: 3 rows of 4 numbers")}
    st.segmented_control(
        _("Material"),
        list(names),
        format_func=names.__getitem__,
        required=True,
        label_visibility="collapsed",
        **state.bind("material"),
    )
    if state.view().material == "toy":
        draw_toy()
    elif (subject := subject_box()) is not None:
        pictures(subject)


@laboratory
def pictures(subject: Subject) -> None:
    choose_layer(subject)
    draw_sentence(subject)


page()
