"""An exercise: the mask comes after the softmax."""

import streamlit as st

from vizformer.components import matrix
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import sitemap
from vizformer.web.lessons.errors import computations, exercise, place
from vizformer.web.widgets import lesson
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words import labels
from vizformer.web.words.i18n import _


@laboratory
def after(subject: Subject) -> None:
    """The weights of a head, with rows that sum to 1 and with rows that do not."""
    kind = place.writes(subject)
    layer, head = place.head(subject, kind)
    found = exercise.find(after_question(), computations.causal_given(subject, kind, layer, head))
    if not found:
        return
    place.boxes(subject, kind)
    contrast = computations.after(subject, kind, layer, head)
    exercise.proof(contrast)
    tokens = labels.texts(subject.trace.tokens[kind])
    exercise.side_by_side(contrast, rows=tokens, columns=tokens)
    sums = contrast.wrong.sum(axis=1)
    st.caption(
        _(
            "With the wrong line the rows sum to {least} at least and {most} at most.",
            least=matrix.number(float(sums.min())),
            most=matrix.number(float(sums.max())),
        )
    )
    st.page_link(sitemap.MASKS.file, query_params={"part": "mistakes"}, label=_("More mistakes with masks: lesson 6"))


def after_question() -> lesson.Choice:
    """The exercise: which line is wrong?"""
    return exercise.question(
        "after",
        _(
            "Causal attention: no token may see a later one. The blocked weights are 0, as they should be. Which line is "
            "wrong all the same?"
        ),
        _(
            "The softmax has already divided by a sum that holds the blocked keys. So the rows sum to less than 1, and by "
            "how much depends on the very tokens that were to be hidden. −∞ has to stand in the scores before the softmax."
        ),
    )
