"""Everything at one step of a training: one slider moves the loss, the answer, the heads and the position vectors."""

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.errors import VizformerError
from vizformer.training.live import Plan
from vizformer.training.training_queue import State
from vizformer.web.catalogue import trainings
from vizformer.web.link import state
from vizformer.web.tools.train.heads import draw_heads, induction
from vizformer.web.widgets import chart
from vizformer.web.words import errors, labels
from vizformer.web.words.i18n import _, show_note, show_text
from vizformer.word_tables import words_of

_WORDS = words_of(__file__)

# The slider stays in sight while one scrolls through what it moves.
STICKY = """<style>div:has(> .st-key-train_when) { position: sticky; top: 3.5rem; z-index: 90;
backdrop-filter: blur(16px); }</style>"""


def explore(name: str, plan: Plan, now: State) -> None:
    st.html(STICKY)
    with st.container(key="train_when"):
        index = moment(name, plan, now)
    left, right = st.columns(2, gap="medium")
    with left:
        loss(plan, now, index)
    with right:
        asked = st.container()
        with st.container(key="train_question"):
            text = question(plan)
        with asked:
            draw_answer(name, index, text)
    draw_heads(name, plan, now, index, text)
    draw_position_vectors(name, plan, now, index)
    if not plan.on.ends:
        induction(name, plan, now, index)


def moment(name: str, plan: Plan, now: State) -> int:
    """The chosen snapshot: the last one up to where the slider stands, which begins at the end, and so follows.

    While the training goes on, the slider is never moved from here: the browser would send its old place back.
    """
    reached = [snapshot.step for snapshot in now.progress.snapshots]
    over = now.phase == "over"
    options, before = (reached if over else list(plan.kept)), f"train.slider.{name}"
    if len(options) == 1:
        return 0
    key = f"{before}.over" if over else before
    if key not in st.session_state:
        earlier = st.session_state.get(f"{before}.at", plan.steps)
        st.session_state[key] = max((step for step in options if step <= earlier), default=options[0])
    chosen = st.select_slider(
        _("After how many steps of training"),
        options,
        key=key,
        help=_("Steps lie close together at the beginning, where most happens. The arrow keys move it too."),
    )
    st.session_state[f"{before}.at"] = chosen
    shown = max(i for i, step in enumerate(reached) if step <= chosen)
    if reached[shown] != chosen:
        show_note("The training has come to step {step} so far; it is shown below.", step=reached[shown])
    return shown


def loss(plan: Plan, now: State, index: int) -> None:
    progress = now.progress
    kept = progress.snapshots
    run = trainings.beside(state.view().beside, plan)
    former = () if run is None else run.progress().snapshots
    figure = figures.training_curves(
        progress.steps,
        progress.losses,
        np.array([snapshot.step for snapshot in kept], dtype=np.int32),
        np.array([snapshot.marks.loss for snapshot in kept], dtype=np.float32),
        np.array([snapshot.marks.accuracy for snapshot in kept], dtype=np.float32),
        at=kept[index].step,
        last=max(plan.steps, former[-1].step if former else 0),
        beside=(
            np.array([snapshot.step for snapshot in former], dtype=np.int32),
            np.array([snapshot.marks.loss for snapshot in former], dtype=np.float32),
            np.array([snapshot.marks.accuracy for snapshot in former], dtype=np.float32),
        ),
    )
    chart.show(figure, key="train.curves")
    marks = kept[index].marks
    show_note(
        "Step {step}: loss {loss} on new examples, {accuracy} of them answered without a mistake.",
        step=kept[index].step,
        loss=f"{marks.loss:.3f}",
        accuracy=labels.percent(marks.accuracy),
    )
    if run is None or not former:
        return
    show_note(
        "Dash and dot, beside it: the training before, with {settings}. It came to step {step}: loss {loss}, {accuracy} "
        "answered without a mistake.",
        settings=trainings.difference(plan, run.plan),
        step=former[-1].step,
        loss=f"{former[-1].marks.loss:.3f}",
        accuracy=labels.percent(former[-1].marks.accuracy),
    )
    st.button(_("Remove these curves"), key="train.alone", on_click=_alone)


def _alone() -> None:
    state.update(beside="")


def question(plan: Plan) -> str:
    """What the model is asked; if it cannot be, one sentence says why and the last question stays."""
    key, good = f"train.text.{plan.task}", f"train.asked.{plan.task}"
    if key not in st.session_state:
        st.session_state[key] = plan.on.example
    typed = st.text_input(_("Your own input"), key=key, persist_state="session")
    try:
        example = plan.on.read(typed)
    except VizformerError as error:
        errors.show(error.message)
        return str(st.session_state.get(good, plan.on.example))
    if len(example.question) > plan.on.longest:
        show_note("Longer than anything in training ({n} symbols at most): most models fail there.", n=plan.on.longest)
    st.session_state[good] = typed
    return typed


def draw_answer(name: str, index: int, text: str) -> None:
    """What the model makes of the question, and how sure it is."""
    look = trainings.look(name, index, text)
    right = "".join(symbol for symbol in look.right if symbol != "</s>")
    mark = _("right") if look.own == right else _("wrong")
    show_text("The model's own answer: {answer} ({mark})", answer=look.own or "–", mark=mark)
    figure = figures.answer_map(look.probabilities, look.symbols, look.right)
    chart.show(figure, key="train.answer")
    show_note("Each column: how probable every symbol is there, given the right ones before it (framed).")


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
