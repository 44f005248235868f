"""An exercise: the embedding is not scaled."""

import streamlit as st

from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.errors import computations, exercise, place
from vizformer.web.widgets import lesson
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words import labels
from vizformer.web.words.i18n import _


@laboratory
def embedding(subject: Subject) -> None:
    """What enters the first layer, and what a trained translator writes from it."""
    shown = place.translator(subject)
    found = exercise.find(embedding_question(), computations.embedding_given(shown))
    if not found:
        return
    contrast = computations.embedding(shown)
    exercise.proof(contrast)
    exercise.side_by_side(contrast, rows=labels.texts(shown.tokens))
    ratio, d = computations.embedding_ratio(shown), shown.config.d_model
    st.latex(
        rf"\frac{{\overline{{|E|}}}}{{\overline{{|P|}}}} = {ratio:.3f} \qquad "
        rf"\sqrt{{{d}}} \cdot {ratio:.3f} = {d**0.5 * ratio:.3f}"
    )
    st.caption(_("Mean length of the tokens' rows over that of the positions, without the factor and with it."))
    if computations.is_translator(shown):
        exercise.writes(
            computations.written_without_scale(shown, corrected=True).text,
            computations.written_without_scale(shown, corrected=False).text,
        )


def embedding_question() -> lesson.Choice:
    """The exercise: which line is wrong?"""
    return exercise.question(
        "embedding",
        _(
            "The rows of the tokens and the position table become the input of the first layer. The shapes are right, and "
            "yet a trained model makes nonsense of it. Which line is wrong?"
        ),
        _(
            "The paper multiplies the rows by √d_model (section 3.4). A table that also makes the logits has small "
            "numbers: without the factor the positions drown the tokens."
        ),
    )
