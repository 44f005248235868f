"""Where a training stands, in words: waiting, running or over, and what can be done about it."""

import numpy as np
import streamlit as st

from vizformer.training.live import Plan
from vizformer.training.training_queue import State
from vizformer.web.catalogue import trainings
from vizformer.web.words import labels
from vizformer.web.words.i18n import _, show_error, show_info, show_note, show_warning

LEARNED = 0.5  # of the new examples answered right: below, a word of advice


def draw_status(name: str, plan: Plan, now: State) -> None:
    progress = now.progress
    st.subheader(trainings.title_of(plan), anchor=False)
    st.caption(trainings.describe(plan))
    if now.phase == "over":
        _ended(plan, now)
        return
    if now.phase == "waiting":
        st.info(
            _("Waiting: {n} before you. It begins by itself; keep this page open.", n=now.ahead)
            if now.ahead
            else _("Waiting: you are next. It begins by itself; keep this page open.")
        )
    elif now.phase == "starting":
        show_info("Starting …")
    else:
        step = int(progress.steps[-1]) if len(progress.steps) else 0
        last = progress.snapshots[-1].marks
        said = _(
            "Step {step} of {steps}. New examples answered right: {accuracy}",
            step=step,
            steps=plan.steps,
            accuracy=labels.percent(last.accuracy),
        )
        st.progress(step / plan.steps, text=said)
    st.button(_("Stop"), key="train.stop", on_click=_stop, args=(name,))
    if st.session_state.get("train.refused") == name:
        show_note("Others are watching the same training, so it goes on.")


def _stop(name: str) -> None:
    if not trainings.queue().stop(name, trainings.who()):
        st.session_state["train.refused"] = name


def _ended(plan: Plan, now: State) -> None:
    progress = now.progress
    if progress.ending == "full":
        show_error(
            "The disk of this server is full, so the training ended without saving its result. Ask the operator "
            "to free some space, then train again."
        )
        return
    if not progress.snapshots:
        show_info("It ended before it began. Train again.")
        return
    kept = progress.snapshots[-1]
    values = {"step": kept.step, "accuracy": labels.percent(kept.marks.accuracy), "seconds": f"{progress.seconds:.0f}"}
    if progress.ending == "done":
        st.success(_("Trained: {step} steps in {seconds} s. New examples answered right: {accuracy}", **values))
        if kept.marks.accuracy < LEARNED and (without := trainings.left_out(plan)):
            show_info(
                "It has not learned the task yet; it trained without {without}. Train again with it and compare the "
                "curves.",
                without=" · ".join(without),
            )
        elif kept.marks.accuracy < LEARNED:
            show_info("It has not learned the task yet. More steps, a learning rate near 0.003 or a larger width help.")
    elif progress.ending == "diverged":
        loss = float(progress.losses[-1]) if len(progress.losses) else float("nan")
        show_error(
            "The training diverged: the loss was {first} before the first step and is {loss} after step {at}. "
            "Everything until step {step} is kept. Choose a smaller learning rate than {rate}; "
            "“before the sublayer” as the place of the norm also helps.",
            first=f"{progress.snapshots[0].marks.loss:.2f}",
            loss=_number(loss),
            at=int(progress.steps[-1]),
            step=kept.step,
            rate=f"{plan.learning_rate:g}",
        )
    elif progress.ending == "time":
        show_warning(
            "The two minutes of computing time are over. Everything until step {step} is kept. Choose fewer "
            "steps, fewer layers or a smaller width.",
            **values,
        )
    elif progress.ending == "abandoned":
        show_info("The training ended because nobody was watching. Everything until step {step} is kept.", **values)
    elif progress.ending == "failed":
        show_error(
            "The training failed, and it is not your mistake. Everything until step {step} is kept. The log of "
            "this server gives the reason.",
            **values,
        )
    else:
        show_info("Stopped. Everything until step {step} is kept.", **values)


def _number(value: float) -> str:
    return f"{value:.2f}" if np.isfinite(value) else _("not a number")
