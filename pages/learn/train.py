"""Train: a tiny Transformer learns while one watches; then loss, heads, positions and answers on one slider."""

from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.errors import VizformerError
from vizformer.web.catalogue import trainings
from vizformer.web.frame import sitemap
from vizformer.web.link import state
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.tools.train.form import choose
from vizformer.web.tools.train.status import status
from vizformer.web.widgets import row_names
from vizformer.web.words import errors, labels
from vizformer.web.words.errors import guarded
from vizformer.web.words.figure_words import words
from vizformer.web.words.i18n import _, translate

if TYPE_CHECKING:
    from vizformer.training.desk import State
    from vizformer.training.live import Plan

POLL = 2.0  # seconds between two looks at a training that goes on
OPENED_ON = ("attention", "qkv", "layer", "generation")  # addresses of the pages that look at any model
PLAIN = {"displayModeBar": False}
# The slider stays in sight while one scrolls through what it moves.
STICKY = """<style>div:has(> .st-key-train_when) { position: sticky; top: 3.5rem; z-index: 90;
backdrop-filter: blur(16px); }</style>"""


def page() -> None:
    guarded()(choose)()
    name = state.view().run
    if not name:
        return
    now = trainings.look_at(name)
    if now is None:
        st.info(_("This training is no longer on the server. Train again: the same choices give the same weights."))
        return
    over = now.phase == "over"
    st.fragment(guarded()(watch), run_every=None if over else POLL)(name, was_over=over)
    if over and trainings.folder(name) is not None:
        guarded()(keep)(name)


def watch(name: str, was_over: bool) -> None:
    """The training as it stands: drawn again every few seconds while it goes on, and whenever the slider moves."""
    now = trainings.look_at(name)
    if now is None or (now.phase == "over") != was_over:
        st.rerun()
    plan = trainings.run(name).plan
    status(name, plan, now)
    if now.progress.snapshots:
        explore(name, plan, now)


# --- along the training -----------------------------------------------------------------------------------------------


def explore(name: str, plan: "Plan", now: "State") -> None:
    """Everything at the chosen step: one slider moves all of it."""
    st.html(STICKY)
    with st.container(key="train_when"):
        index = moment(name, plan, now)
    left, right = st.columns(2, gap="medium")
    with left:
        loss(plan, now, index)
    with right:
        text = question(plan)
        answer(name, index, text)
    heads(name, plan, index, text)
    positions(name, plan, now, index)
    if not plan.on.ends:
        induction(name, plan, now, index)


def moment(name: str, plan: "Plan", now: "State") -> int:
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
        st.caption(_("The training has come to step {step} so far; it is shown below.", step=reached[shown]))
    return shown


def loss(plan: "Plan", now: "State", index: int) -> None:
    progress = now.progress
    kept = progress.snapshots
    figure = figures.training_curves(
        progress.steps,
        progress.losses,
        np.array([snapshot.step for snapshot in kept], dtype=np.int32),
        np.array([snapshot.marks.loss for snapshot in kept], dtype=np.float32),
        np.array([snapshot.marks.accuracy for snapshot in kept], dtype=np.float32),
        at=kept[index].step,
        last=plan.steps,
        words=words(figures.ENGLISH),
    )
    st.plotly_chart(figure, config=PLAIN, key="train.curves")
    marks = kept[index].marks
    st.caption(
        _(
            "Step {step}: loss {loss} on new examples, {accuracy} of them answered without a mistake.",
            step=kept[index].step,
            loss=f"{marks.loss:.3f}",
            accuracy=labels.percent(marks.accuracy),
        )
    )


def question(plan: "Plan") -> str:
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
        st.caption(
            _("Longer than anything in training ({n} symbols at most): most models fail there.", n=plan.on.longest)
        )
    st.session_state[good] = typed
    return typed


def answer(name: str, index: int, text: str) -> None:
    """What the model makes of the question, and how sure it is."""
    look = trainings.look(name, index, text)
    right = "".join(symbol for symbol in look.right if symbol != "</s>")
    mark = _("right") if look.own == right else _("wrong")
    st.text(_("The model's own answer: {answer} ({mark})", answer=look.own or "–", mark=mark))
    figure = figures.answer_map(look.probabilities, look.symbols, look.right, words=words(figures.ENGLISH))
    st.plotly_chart(figure, config=PLAIN, key="train.answer")
    st.caption(_("Each column: how probable every symbol is there, given the right ones before it (framed)."))


def heads(name: str, plan: "Plan", index: int, text: str) -> None:
    """The chosen head's attention, beside that of the untrained model."""
    st.subheader(_("Attention"), anchor=False)
    kinds = list(trainings.look(name, index, text).maps)
    which, layer_box, head_box, beside = st.columns([4, 1, 1, 2], vertical_alignment="bottom")
    names = {name: labels.kind_label(name) for name in kinds}
    kind = which.segmented_control(
        _("Site"),
        kinds,
        format_func=names.__getitem__,
        default=kinds[-1],
        required=True,
        key=f"train.site.{len(kinds)}",
        persist_state="session",
    )
    layer = layer_box.selectbox(
        _("Layer"),
        range(plan.n_layers),
        index=plan.n_layers - 1,
        key=f"train.layer.{plan.n_layers}",
        persist_state="session",
    )
    head = head_box.selectbox(_("Head"), range(plan.n_heads), key=f"train.head.{plan.n_heads}", persist_state="session")
    compared = beside.toggle(_("Beside the untrained model"), key="train.compared", persist_state="session")
    st.session_state["train.place"] = {"site": kind, "layer": layer, "head": head}
    shown = [(_("Untrained"), 0), (_("Now"), index)] if compared else [("", index)]
    for place, ((title, number), column) in enumerate(zip(shown, st.columns(len(shown)), strict=True)):
        look = trainings.look(name, number, text)
        rows_of, columns_of = (look.tokens[stack] for stack in labels.stacks(kind))
        queries, keys = row_names.following(rows_of, kind), labels.texts(columns_of)
        maps = look.maps[kind]
        figure = figures.attention_heatmap(
            maps.weights[layer, head],
            queries,
            keys,
            reasons=maps.reasons[layer],
            title=title,
            words=words(figures.ENGLISH),
        )
        column.plotly_chart(figure, config=PLAIN, key=f"train.map.{place}")
        if compared:
            column.text(_("Its answer: {answer}", answer=look.own or "–"))


def induction(name: str, plan: "Plan", now: "State", index: int) -> None:
    """The two halves of an induction head, in every head, along the training."""
    st.subheader(_("Do induction heads form?"), anchor=False)
    st.markdown(
        _(
            "Measured on random tokens that come twice. A **previous-token head** looks at the token before. An "
            "**induction head** looks at what followed the same token the first time: it builds on the previous-token "
            "head of a layer before it, which is why one layer is not enough."
        )
    )
    kept = now.progress.snapshots
    steps = np.array([snapshot.step for snapshot in kept], dtype=np.int32)
    found = [trainings.scores(name, number) for number in range(len(kept))]
    titles = {"previous_token": _("Previous token"), "induction": _("Induction")}
    for column, (score, title) in zip(st.columns(2, gap="medium"), titles.items(), strict=True):
        values = np.stack([getattr(one, score) for one in found])
        figure = figures.score_curves(
            steps, values, at=kept[index].step, last=plan.steps, title=title, words=words(figures.ENGLISH)
        )
        column.plotly_chart(figure, config=PLAIN, key=f"train.score.{score}")
        layer, head = np.unravel_index(values[index].argmax(), values[index].shape)
        column.caption(
            _(
                "Strongest at this step: layer {layer}, head {head} with {score}",
                layer=int(layer),
                head=int(head),
                score=f"{values[index].max():.2f}",
            )
        )


def positions(name: str, plan: "Plan", now: "State", index: int) -> None:
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
    st.plotly_chart(figure, config=PLAIN, key="train.positions")
    if plan.positions == "sinusoidal":
        st.caption(_("Computed, not learned: they stay the same throughout."))


# --- and afterwards ---------------------------------------------------------------------------------------------------


def keep(name: str) -> None:
    """The model as a file, and on the other pages."""
    st.subheader(_("Keep the model"), anchor=False)
    trainings.claim(name)
    plan = trainings.run(name).plan
    asked = plan.on.read(str(st.session_state.get(f"train.asked.{plan.task}", plan.on.example)))
    with st.container(horizontal=True, vertical_alignment="center"):
        st.text(_("Open it on:"))
        for entry in (entry for __, entries in sitemap.SECTIONS for entry in entries if entry.url in OPENED_ON):
            if st.button(translate(entry.title), key=f"train.open.{entry.url}"):
                place = st.session_state.get("train.place", {})
                text = plan.on.text(asked, plan.architecture)
                state.update(
                    model=ModelRef.parse(name), text=text, target="", edits="", query=0, position=0, step=0, **place
                )
                st.switch_page(entry.file)
        st.download_button(
            _("Download (zip)"),
            data=lambda: trainings.archive(name),
            file_name=f"{name}.zip",
            mime="application/zip",
            on_click="ignore",
            key="train.download",
        )
    st.caption(
        _(
            "It is in the list of models of the other pages as “{title}”, for you and for whoever has your link, until "
            "the server is restarted. The file can be opened with vizformer.load.",
            title=trainings.title(name),
        )
    )


page()
