"""An exercise: the slow waves stand in the low dimensions."""

import streamlit as st

from vizformer import figures
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.errors import computations, exercise, place
from vizformer.web.widgets import chart, lesson
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words.figure_words import words
from vizformer.web.words.i18n import _

DRAWN = 48  # dimensions and positions of the pictures
POSITIONS = 48


@laboratory
def waves(subject: Subject) -> None:
    """Both tables, and what a trained translator makes of the wrong one."""
    n, d = len(subject.tokens), subject.config.d_model // 2 * 2
    found = exercise.find(waves_question(), {"n": n, "d": d})
    if not found:
        return
    contrast = computations.waves(POSITIONS, min(d, DRAWN))
    exercise.proof(contrast)
    left, right = st.columns(2)
    for column, name, table in ((left, _("right"), contrast.right), (right, _("wrong"), contrast.wrong)):
        chart.show(
            figures.positional_heatmap(table, title=name, words=words(figures.ENGLISH)),
            key=f"errors.waves.{name}",
            on=column,
        )
    shown = place.translator(subject)
    if not computations.is_translator(shown):
        return
    exercise.writes(
        computations.written_with_waves(shown, corrected=True).text,
        computations.written_with_waves(shown, corrected=False).text,
    )
    st.caption(
        _(
            "The trained model reads a table here that it was not trained with. How much of the sentence survives says how "
            "much its encoder uses positions. A model that is trained with the wrong order from the start has, but for the "
            "fastest wave, only its dimensions in another order: so the mistake often goes unnoticed."
        )
    )


def waves_question() -> lesson.Choice:
    """The exercise: which line is wrong?"""
    return exercise.question(
        "waves",
        _(
            "The position table of the paper: low dimensions turn fast, high ones slowly. These lines run and give a table "
            "of the right shape. Which one is wrong?"
        ),
        _(
            "The wavelengths of the paper go from 2π in dimension 0 up to 10000 · 2π. With 1 − pair / d they go the other "
            "way: the first dimensions hardly change from token to token."
        ),
    )
