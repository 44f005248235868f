"""A training: where it stands, and everything at one step of it, moved by one slider."""

from typing import Any

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.analysis import Kind
from vizformer.analysis.heads import measures
from vizformer.analysis.heads.induction import strongest_head
from vizformer.errors import VizformerError
from vizformer.training.live import Plan
from vizformer.training.runs import State
from vizformer.web.catalogue import training_steps, trainings
from vizformer.web.frame import presses, sitemap
from vizformer.web.link import state
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.link.view import usual_query
from vizformer.web.turns import in_turn
from vizformer.web.widgets import attention_selector, chart, map_words
from vizformer.web.words import errors, labels
from vizformer.web.words.i18n import (
    _,
    show_error,
    show_info,
    show_markdown,
    show_note,
    show_text,
    show_warning,
    translate,
)
from vizformer.word_tables import words_of

LEARNED = 0.5  # of the new examples answered right: below, a word of advice

SIDE_BY_SIDE = "side_by_side"
OPENED_ON = ("qkv", "layer", "attention", "generation", SIDE_BY_SIDE)  # addresses of the pages that look at any model


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


def keep(name: str) -> None:
    """The model as a file, and on the other pages."""
    st.subheader(_("Keep the model"), anchor=False)
    training_steps.claim(name)
    plan = trainings.run(name).plan
    asked = plan.on.read(str(st.session_state.get(f"train.asked.{plan.task}", plan.on.example)))
    with st.container(horizontal=True, vertical_alignment="center"):
        show_text("Open it on:")
        for entry in map(sitemap.PAGES.__getitem__, OPENED_ON):
            if presses.button(translate(entry.title), key=f"train.open.{entry.url}"):
                place = st.session_state.get("train.place", {})
                model = ModelRef.parse(name)
                if entry.url == SIDE_BY_SIDE:  # what the training has made of what it began with
                    place = {**place, "other": model, "second": ""}
                    model = training_steps.steps(model)[0]
                text = plan.on.text(asked, plan.architecture)
                state.update(model=model, text=text, target="", edits="", query=0, position=0, step=0, **place)
                st.switch_page(entry.file)
        st.download_button(
            _("Download (zip)"),
            data=in_turn(lambda: trainings.archive(name)),
            file_name=f"{name}.zip",
            mime="application/zip",
            on_click="ignore",
            key="train.download",
        )
    show_note(
        "The list of models of the other pages shows it as “{title}”, for you and everyone with your "
        "link, until the server restarts or needs the room for newer trainings. vizformer.load opens the "
        "file.",
        title=trainings.title(name),
    )


# Everything at one step of a training: one slider moves the loss, the answer, the heads and the position vectors.

_WORDS = words_of(__file__)

# The slider stays in sight while one scrolls through what it moves.
STICKY = """<style>div:has(> .st-key-train_when) { position: sticky; top: 3.5rem; z-index: 90;
backdrop-filter: blur(16px); }</style>"""
CHOSEN = "train.place_chosen"  # whether the reader chose a head, of models of which size


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
            text = task_question(plan)
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
        help=_(
            "Most changes happen at the beginning, so steps are closest there. The arrow keys also move the slider."
        ),
    )
    st.session_state[f"{before}.at"] = chosen
    shown = max(i for i, step in enumerate(reached) if step <= chosen)
    if reached[shown] != chosen:
        show_note("The training has reached step {step}, shown below.", step=reached[shown])
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
        "Step {step}: loss {loss} on new examples, {accuracy} of them answered correctly.",
        step=kept[index].step,
        loss=f"{marks.loss:.3f}",
        accuracy=labels.percent(marks.accuracy),
    )
    if run is None or not former:
        return
    show_note(
        "Dash-dotted: the training before, with {settings}. It reached step {step}: loss {loss}, "
        "{accuracy} answered correctly.",
        settings=trainings.difference(plan, run.plan),
        step=former[-1].step,
        loss=f"{former[-1].marks.loss:.3f}",
        accuracy=labels.percent(former[-1].marks.accuracy),
    )
    st.button(_("Remove these curves"), key="train.alone", on_click=_alone)


def _alone() -> None:
    state.update(beside="")


def task_question(plan: Plan) -> str:
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
        show_note("Computed, not learned: they do not change.")


def draw_heads(name: str, plan: Plan, now: State, index: int, text: str) -> None:
    st.subheader(_("Attention"), anchor=False)
    kinds = list(trainings.look(name, index, text).maps)
    which, layer_box, head_box, beside = st.columns([4, 1, 1, 2], vertical_alignment="bottom")
    names = {name: labels.kind_label(name) for name in kinds}
    kind = which.segmented_control(
        _("Kind of attention"),
        kinds,
        format_func=names.__getitem__,
        default=kinds[-1],
        required=True,
        key=f"train.site.{len(kinds)}",
        persist_state="session",
    )
    size = (plan.n_layers, plan.n_heads)
    layer_key, head_key = f"train.layer.{plan.n_layers}", f"train.head.{plan.n_heads}"
    why = ""
    if st.session_state.get(CHOSEN) != size:
        (st.session_state[layer_key], st.session_state[head_key]), why = _telling(name, now, kind, text)
    bound: dict[str, Any] = {"on_change": _choose, "args": (size,), "persist_state": "session"}
    layer = layer_box.selectbox(_("Layer"), range(plan.n_layers), key=layer_key, **bound)
    head = head_box.selectbox(_("Head"), range(plan.n_heads), key=head_key, **bound)
    compared = beside.toggle(_("Beside the untrained model"), key="train.compared", persist_state="session")
    st.session_state["train.place"] = {"kind": kind, "layer": layer, "head": head}
    shown = [(_("Untrained"), 0), (_("Now"), index)] if compared else [("", index)]
    for place, ((title, number), column) in enumerate(zip(shown, st.columns(len(shown)), strict=True)):
        look = trainings.look(name, number, text)
        rows_of, columns_of = (look.tokens[stack] for stack in labels.stacks(kind))
        queries, keys = map_words.following(rows_of, kind), labels.texts(columns_of)
        maps = look.maps[kind]
        figure = figures.attention_heatmap(
            maps.weights[layer, head], queries, keys, reasons=maps.reasons[layer], title=title
        )
        chart.show(figure, key=f"train.map.{place}", on=column)
        if compared:
            column.text(_("Its answer: {answer}", answer=look.own or "–"))
    if why:
        st.caption(why)


def _choose(size: tuple[int, int]) -> None:
    st.session_state[CHOSEN] = size


def _telling(name: str, now: State, kind: Kind, text: str) -> tuple[tuple[int, int], str]:
    """The head whose row of the last word says most, as far as the training has come, and why it is shown."""
    look = trainings.look(name, len(now.progress.snapshots) - 1, text)
    queries, keys = (look.tokens[stack] for stack in labels.stacks(kind))
    query = usual_query(queries)
    found = measures.telling(
        look.maps[kind].weights[:, :, query], measures.words_to_look_at(keys, None if kind == "cross" else query)
    )
    if found is None:
        return (0, 0), ""
    return (found.layer, found.head), attention_selector.why(found, queries[query], keys[found.key])


def induction(name: str, plan: Plan, now: State, index: int) -> None:
    """The two halves of an induction head, in every head, along the training."""
    st.subheader(_("Do induction heads form?"), anchor=False)
    show_markdown(
        "Measured on random tokens that occur twice. A **previous-token head** attends to the token before. "
        "An **induction head** attends to the token that followed the same token the first time: it needs a "
        "previous-token head in an earlier layer, so one layer is not enough."
    )
    kept = now.progress.snapshots
    steps = np.array([snapshot.step for snapshot in kept], dtype=np.int32)
    found = [trainings.scores(name, number) for number in range(len(kept))]
    titles = {"previous_token": _("Previous token"), "induction": _("Induction")}
    for column, (score, title) in zip(st.columns(2, gap="medium"), titles.items(), strict=True):
        values = np.stack([getattr(one, score) for one in found])
        figure = figures.score_curves(steps, values, at=kept[index].step, last=plan.steps, title=title)
        chart.show(figure, key=f"train.score.{score}", on=column)
        layer, head, strongest = strongest_head(values[index])
        column.caption(
            _(
                "Strongest at this step: layer {layer}, head {head} with {score}",
                layer=layer,
                head=head,
                score=f"{strongest:.2f}",
            )
        )
