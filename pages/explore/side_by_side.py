"""Side by side: two models on one text, or one model on two: where their heads, streams, answers and weights differ."""

from contextlib import suppress

import streamlit as st

from vizformer.errors import VizformerError
from vizformer.web.catalogue.subject import Subject
from vizformer.web.pages.model_report import open_model
from vizformer.web.pages.side_by_side.answers import draw_answers, draw_in_python, draw_streams
from vizformer.web.pages.side_by_side.heads import draw_heads, draw_one_head
from vizformer.web.pages.side_by_side.pair import asks_for_second, choose
from vizformer.web.pages.side_by_side.weights import draw_alone, draw_weights
from vizformer.web.widgets.choices import line
from vizformer.web.widgets.laboratories import laboratory
from vizformer.web.widgets.model_input import subject_box
from vizformer.web.words.errors import guarded, plain, show_error
from vizformer.web.words.i18n import _


def page() -> None:
    open_model.arrive()
    subject = subject_box()
    if subject is None:
        return
    asks = asks_for_second(subject)
    if asks:
        st.subheader(_("Open a second model beside {name}", name=plain(subject.title)), anchor=False)
        open_model.progress()
        open_model.box(unfolded=True, beside=True)
    parts(subject, asks)


@laboratory
def parts(subject: Subject, asks: bool) -> None:
    if asks != asks_for_second(subject):  # the box stands outside of this part, which runs alone
        st.rerun()
    pair = choose(subject)
    if pair is None:
        return
    try:
        pair.runs  # noqa: B018
    except VizformerError as error:  # they cannot be compared: but their weights may be
        show_error(error)
        with suppress(VizformerError):  # one reason is enough
            draw_alone(pair)
        return
    guarded()(draw_heads)(pair, line())
    for part in (draw_one_head, draw_streams, draw_answers, draw_weights, draw_in_python):
        guarded()(part)(pair)


page()
