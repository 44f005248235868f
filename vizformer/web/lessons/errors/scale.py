"""An exercise: the root of d_model where that of d_k belongs."""

import math

import streamlit as st

from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.errors import computations, exercise, place
from vizformer.web.widgets import lesson
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words import labels
from vizformer.web.words.i18n import _


@laboratory
def scale(subject: Subject) -> None:
    """The weights of a head, flat and as they are."""
    kind = place.reads(subject)
    layer, head = place.head(subject, kind)
    given = computations.head_given(subject, kind, layer, head)
    found = exercise.find(scale_question(), given)
    if not found:
        return
    place.boxes(subject, kind)
    contrast = computations.scale(subject, kind, layer, head)
    d_model, d_head = subject.config.d_model, subject.config.d_head
    exercise.proof(contrast)
    tokens = labels.texts(subject.tokens)
    exercise.side_by_side(contrast, rows=tokens, columns=tokens)
    right, wrong = computations.largest_weights(subject, kind, layer, head)
    st.latex(
        rf"\sqrt{{d_\mathrm{{model}} / d_k}} = \sqrt{{{d_model} / {d_head}}} = {math.sqrt(d_model / d_head):.2f} \qquad "
        rf"\overline{{\max_j A_{{ij}}}}: \; {right:.3f} \to {wrong:.3f}"
    )
    st.caption(
        _(
            "The mean of the rows' largest weights: {right} with the right line, {wrong} with the wrong one. If all rows "
            "were quite flat, it would be {flat}.",
            right=f"{right:.3f}",
            wrong=f"{wrong:.3f}",
            flat=f"{computations.flat_weight(subject, kind, layer, head):.3f}",
        )
    )


def scale_question() -> lesson.Choice:
    """The exercise: which line is wrong?"""
    return exercise.question(
        "scale",
        _("The attention of one head. It runs, but its weights are flatter than the model's. Which line is wrong?"),
        _(
            "The paper divides by √d_k, the width of one head: q · k is a sum of d_k products, and its spread grows with "
            "their number. With √512 in place of √64 every score of the paper's base model is √8 = 2.83 times too small."
        ),
    )
