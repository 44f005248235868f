"""Train: a tiny Transformer learns while one watches; then loss, heads, positions and answers on one slider."""

import streamlit as st

from vizformer.web.catalogue import trainings
from vizformer.web.link import state
from vizformer.web.pages.train.form import choose
from vizformer.web.pages.train.running import draw_status, explore, keep
from vizformer.web.words.errors import guarded
from vizformer.web.words.i18n import _, show_info, show_note

POLL = 2.0  # seconds between two looks at a training that goes on


def page() -> None:
    name = state.view().run or trainings.example().name
    now = trainings.look_at(name)
    form = st.expander(_("Train a model of your own"), key="train.own")
    with form:
        guarded()(choose)(name, None if now is None else trainings.run(name).plan)
    name = state.view().run or trainings.example().name
    now = trainings.look_at(name)
    if now is None:
        show_info("This training is no longer on the server. Train again: the same choices give the same weights.")
        return
    over = now.phase == "over"
    st.fragment(guarded()(watch), run_every=None if over else POLL)(name, was_over=over)
    if not state.view().run:
        show_note(
            "This training is finished: a small model has learned to repeat earlier letters. Drag through it; "
            "then train a model of your own with the choices above."
        )
    if over and state.view().run and trainings.folder(name) is not None:
        guarded()(keep)(name)


def watch(name: str, was_over: bool) -> None:
    """The training as it stands: drawn again every few seconds while it goes on, and whenever the slider moves."""
    now = trainings.look_at(name)
    if now is None or (now.phase == "over") != was_over:
        st.rerun()
    plan = trainings.run(name).plan
    over = now.phase == "over"
    if not over or not now.progress.snapshots:
        draw_status(name, plan, now)
    if now.progress.snapshots:
        explore(name, plan, now)
    if over and now.progress.snapshots:
        draw_status(name, plan, now)


page()
