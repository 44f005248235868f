"""Where does the answer come from?: which parts and tokens carry it, after which layer it is there, and its terms."""

import streamlit as st

from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.subject import Subject
from vizformer.web.pages.lens.evidence import draw_evidence, evidence_in_words
from vizformer.web.pages.lens.inputs import draw_inputs
from vizformer.web.pages.lens.layers import draw_layers, follow, in_words
from vizformer.web.pages.lens.terms import draw_layer_shares, draw_terms
from vizformer.web.pages.lens.token_choice import choose, draw_in_python
from vizformer.web.widgets.choices import BESIDE, line
from vizformer.web.widgets.laboratories import laboratory
from vizformer.web.widgets.map_words import say_pronoun
from vizformer.web.widgets.model_input import subject_box
from vizformer.web.words.errors import guarded
from vizformer.web.words.i18n import _, show_info


def page() -> None:
    subject = subject_box()
    if subject is None:
        return
    if not model_cache.predicts(subject.model):
        show_info("This model's files contain no output layer that predicts tokens, so there is no answer to explain.")
        return
    pictures(subject)


@laboratory
def pictures(subject: Subject) -> None:
    if subject.trace.first_not_finite() is not None:  # which has been said: no logit has terms
        return
    follow(subject)
    settings = line()
    picture, beside = st.columns(BESIDE, gap="medium")
    with beside:
        asked = choose(subject, settings)
    with picture:
        guarded()(draw_evidence if subject.checkpoint.is_own else draw_layer_shares)(subject, asked)
    with beside:
        if subject.checkpoint.is_own:
            guarded()(evidence_in_words)(subject, asked)
            say_pronoun(subject)
    st.subheader(_("After which layer it appears"), anchor=False)
    picture, beside = st.columns(BESIDE, gap="medium")
    with beside:
        guarded()(in_words)(subject, asked)
    with picture:
        guarded()(draw_layers)(subject, asked)
    if not subject.checkpoint.is_own:
        guarded()(draw_inputs)(subject, asked)
        show_info(
            "Evidence and the terms of a logit need the role of every weight, which VizFormer knows only of models that it "
            "computes itself. Use a bundled model for these."
        )
        return
    for part in (draw_terms, draw_inputs, draw_in_python):
        guarded()(part)(subject, asked)


page()
