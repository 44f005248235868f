"""The vectors that tell the model in training where a token stands."""

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.training.live import Plan
from vizformer.training.training_queue import State
from vizformer.web.catalogue import trainings
from vizformer.web.widgets import chart
from vizformer.web.words.figure_words import words
from vizformer.web.words.i18n import _, show_note


def draw_position_vectors(name: str, plan: Plan, now: State, index: int) -> None:
    """The vectors that tell the model where a token stands."""
    st.subheader(_("Position vectors"), anchor=False)
    vectors = trainings.positions(name, index)
    if vectors is None:
        told = {
            "rope": _(
                "Nothing is added to the embeddings: the model turns queries and keys by their positions "
                "instead (RoPE)."
            ),
            "alibi": _(
                "Nothing is added to the embeddings: every head takes its slope times the distance off the scores "
                "instead (ALiBi)."
            ),
            "relative": _(
                "Nothing is added to the embeddings: every head adds a learned number for the distance to the scores "
                "instead (T5)."
            ),
            "none": _("Nothing is added to the embeddings: the model is not told where a token stands."),
        }
        st.text(told[plan.positions])
        return
    ends = [trainings.positions(name, number) for number in (0, len(now.progress.snapshots) - 1)]
    end = max(float(np.abs(one).max()) for one in ends if one is not None)
    figure = figures.positional_heatmap(vectors, end=end, words=words(figures.ENGLISH))
    chart.show(figure, key="train.positions")
    if plan.positions == "sinusoidal":
        show_note("Computed, not learned: they stay the same throughout.")
