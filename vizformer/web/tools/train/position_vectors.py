"""The vectors that tell the model in training where a token stands."""

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.training.live import Plan
from vizformer.training.training_queue import State
from vizformer.web.catalogue import trainings
from vizformer.web.widgets import chart
from vizformer.web.words.i18n import _, show_note, show_text
from vizformer.word_tables import words_of

_WORDS = words_of(__file__)


def draw_position_vectors(name: str, plan: Plan, now: State, index: int) -> None:
    """The vectors that tell the model where a token stands."""
    st.subheader(_("Position vectors"), anchor=False)
    vectors = trainings.positions(name, index)
    if vectors is None:
        show_text(_WORDS[plan.positions])
        return
    ends = [trainings.positions(name, number) for number in (0, len(now.progress.snapshots) - 1)]
    end = max(float(np.abs(one).max()) for one in ends if one is not None)
    figure = figures.positional_heatmap(vectors, end=end)
    chart.show(figure, key="train.positions")
    if plan.positions == "sinusoidal":
        show_note("Computed, not learned: they stay the same throughout.")
