"""What is to be trained: the choices of the page Train."""

from collections.abc import Collection
from typing import Any

import streamlit as st

from vizformer.training.live import Plan
from vizformer.web.catalogue import training_steps, trainings
from vizformer.web.frame import presses
from vizformer.web.link import state
from vizformer.web.widgets import lesson
from vizformer.web.words.i18n import _, show_note, translate, words
from vizformer.word_tables import words_of

STEPS = (100, 300, 500, 800, 1000, 1500, 2000, 3000, 5000)
USUAL = {"copy": 1000, "reverse": 1000, "sort": 800, "addition": 2000, "repeat": 800}
RATES = (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 1.0)
WARMUPS = (0, 2, 5, 10, 20, 50)  # per cent of the steps
_SHOWN = "train.form_of"
WITHOUT = {"warmup": 10, "scaled": True, "residual": True}  # what the link says of a training, and its usual value

_WORDS = words_of(__file__)


def choose(shown: str, plan: Plan | None) -> None:
    """The form; its button queues the training and makes it the one that the page shows.

    It begins with the choices of the training that is shown, and whenever another one is, so that both say the same.
    """
    if plan is not None and st.session_state.get(_SHOWN) != shown:
        _take(plan, linked=bool(state.view().run))
        st.session_state[_SHOWN] = shown
    names = {name: translate(title) for name, title in trainings.TASKS.items()}
    task = st.segmented_control(
        _("Task"),
        list(names),
        format_func=names.__getitem__,
        required=True,
        key=_begins("task", "copy", list(names)),
        persist_state="session",
    )
    task = task or "copy"
    told = _WORDS["tasks"][task]
    show_note(told)
    with st.form("train.form", border=True):
        choices = _model(task) | _course(task)
        if presses.submit(_("Train"), key="train.start", type="primary"):
            _begin(task, choices)
            return
    if plan is not None and plan.task != task:
        show_note("Below is still the training “{title}”, until you train this one.", title=trainings.title_of(plan))


def _model(task: str) -> dict[str, Any]:
    both = {"encoder-decoder": _("Encoder and decoder"), "decoder-only": _("Decoder only")}
    kinds = ["decoder-only"] if task == "repeat" else list(both)
    places = words(_WORDS["places"])
    orders = {"pre": _("Before the sublayer"), "post": _("After the sum (2017)")}
    first, second = st.columns([3, 2]), st.columns(5)
    return {
        "architecture": first[0].segmented_control(
            _("Architecture"),
            kinds,
            format_func=both.__getitem__,
            required=True,
            key=_begins(f"architecture.{len(kinds)}", kinds[0], kinds),
            persist_state="session",
        )
        or kinds[0],
        "positions": first[1].selectbox(
            _("Positions"),
            list(places),
            format_func=places.__getitem__,
            persist_state="session",
            # With RoPE the two halves of an induction head are sharpest: 0.71 and 0.80, learned 0.31 and 0.85.
            key=_begins("positions.repeat", "rope", list(places))
            if task == "repeat"
            else _begins("positions.kind", "learned", list(places)),
        ),
        "n_layers": _box(second[0], _("Layers"), (1, 2, 3, 4), 2, "layers"),
        "n_heads": _box(second[1], _("Heads"), (1, 2, 4, 8), 4, "heads"),
        "d_model": _box(second[2], _("Width"), (16, 32, 64, 96, 128), 64, "width"),
        "norm_order": second[3].selectbox(
            _("Layer norm"),
            list(orders),
            format_func=orders.__getitem__,
            key=_begins("norm", "pre", list(orders)),
            persist_state="session",
        ),
        "steps": _box(second[4], _("Steps"), STEPS, USUAL[task], f"steps.{task}"),
    }


def _course(task: str) -> dict[str, Any]:
    with st.expander(_("More")):
        rate, seed = st.columns(2)
        return {
            "learning_rate": _box(rate, _("Learning rate"), RATES, 0.003, "rate"),
            "seed": int(
                seed.number_input(
                    _("Seed"),
                    0,
                    9999,
                    key=_begins("seed", 0, range(10_000)),
                    persist_state="session",
                    help=_("Another number gives other initial weights and examples."),
                )
            ),
            **_without(),
        }


def _without() -> dict[str, Any]:
    """What the training may do without: the link says it, so that a teacher's link brings the choices with it."""
    for name, usual in WITHOUT.items():
        _from_link(name, usual, WARMUPS if name == "warmup" else None)
    show_note("An ablation: train without one of these, then with it, and compare the curves.")
    warmup, scaled, residual = st.columns(3, vertical_alignment="bottom")
    shares = {0: _("None"), **{share: _("{share} of the steps", share=f"{share} %") for share in WARMUPS if share}}
    return {
        "warmup": warmup.selectbox(
            _("Warm-up"),
            WARMUPS,
            format_func=shares.__getitem__,
            key="train.warmup",
            persist_state="session",
            help=_("The learning rate grows from 0 over so many steps, then falls. Without: it begins at its peak."),
        )
        / 100,
        "scaled_embedding": scaled.toggle(
            _("Embeddings times √d_model"),
            key="train.scaled",
            persist_state="session",
            help=_("Without: the rows of the table stay short beside the positions."),
        ),
        "residual": residual.toggle(
            _("Residual connections"),
            key="train.residual",
            persist_state="session",
            help=_("Without: the output of a sublayer replaces its input instead of being added to it."),
        ),
    }


def _from_link(name: str, usual: Any, options: tuple[int, ...] | None) -> None:
    """Sets a widget of the form to what the link says, whenever the link says something new.

    Inside a form nothing may be called on a change; the link is written when the training is begun.
    """
    said, known = lesson.value(f"train.{name}", usual, options), f"train.{name}.link"
    if st.session_state.get(known) != said or f"train.{name}" not in st.session_state:
        st.session_state[f"train.{name}"] = said
    st.session_state[known] = said


def _box(column: Any, label: str, options: tuple[Any, ...], usual: Any, key: str) -> Any:
    return column.selectbox(
        label,
        options,
        key=_begins(key, usual, options),
        format_func=lambda value: f"{value:g}",
        persist_state="session",
    )


def _begins(name: str, usual: Any, options: Collection[Any]) -> str:
    """The key of a widget of the form, which begins with the usual value where it has none of its own yet."""
    key = f"train.{name}"
    if st.session_state.get(key) not in options:
        st.session_state[key] = usual
    return key


def _take(plan: Plan, *, linked: bool) -> None:
    """Fills the form with the choices of a training; what it did without only where its link was opened."""
    repeat = plan.task == "repeat"
    values: dict[str, Any] = {
        "task": plan.task,
        f"architecture.{1 if repeat else 2}": plan.architecture,
        f"positions.{'repeat' if repeat else 'kind'}": plan.positions,
        "layers": plan.n_layers,
        "heads": plan.n_heads,
        "width": plan.d_model,
        "norm": plan.norm_order,
        f"steps.{plan.task}": plan.steps,
        "rate": plan.learning_rate,
        "seed": plan.seed,
    }
    if linked:
        without = {"warmup": round(100 * plan.warmup), "scaled": plan.scaled_embedding, "residual": plan.residual}
        for name, usual in WITHOUT.items():
            options = WARMUPS if name == "warmup" else None
            values[name], values[f"{name}.link"] = without[name], lesson.value(f"train.{name}", usual, options)
    st.session_state.update({f"train.{name}": value for name, value in values.items()})


def _begin(task: str, choices: dict[str, Any]) -> None:
    before, beside = state.view().run, state.view().beside
    name = trainings.submit(Plan(task=task, **choices))
    if before and before != name:
        trainings.queue().stop(before, trainings.who())  # one at a time; others may still be watching it
    training_steps.claim(name)
    for one, usual in WITHOUT.items():
        chosen = st.session_state[f"train.{one}"]
        st.session_state[f"train.{one}.link"] = chosen
        lesson.change(f"train.{one}", chosen, usual)
    st.session_state[_SHOWN] = name
    state.update(run=name, beside=beside if before in ("", name) else before)
