"""The laboratory Measured: ways of attention, or an RNN beside it, as recorded and, at a press, on this machine."""

import json
from dataclasses import dataclass
from functools import cache

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.analysis.costs.attention_speed import (
    COMPARISONS,
    LAYER_HEADS,
    LAYER_WAYS,
    LAYER_WIDTH,
    LONGEST_BACKWARD,
    REACH,
    WAYS,
    Kind,
    Measured,
    due,
)
from vizformer.analysis.costs.layer_types import LayerType, Sizes, full_cost
from vizformer.assets import asset
from vizformer.components import table
from vizformer.components.table import Number, Row, numbers
from vizformer.web.catalogue import speed_run
from vizformer.web.catalogue.speed_run import SpeedState
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import presses
from vizformer.web.widgets import chart, lesson
from vizformer.web.widgets.lab import Laboratory, controls
from vizformer.web.words import counts, labels
from vizformer.web.words.errors import guarded

lab = Laboratory("costs", "measured")
POLL = 1.0  # seconds between two looks at a measurement that goes on
ENDINGS = ("time", "stopped", "abandoned", "failed")  # that are told
CODE = """n, d = 1024, 64
q, k, v = torch.randn(3, n, d)
full = torch.softmax(q @ k.T / d**0.5, -1) @ v  # [n, n] is written down
fused = F.scaled_dot_product_attention(q[None, None], k[None, None], v[None, None])[0, 0]
same = torch.allclose(full, fused, atol=1e-5)"""
LAYERS_CODE = """n, d = 512, {d}
x = torch.randn(1, n, d)
attention, gru = torch.nn.MultiheadAttention(d, {heads}, batch_first=True), torch.nn.GRU(d, d, batch_first=True)
seconds = [timeit.timeit(call, number=10) / 10 for call in (lambda: attention(x, x, x), lambda: gru(x))]"""
LAYERS: tuple[LayerType, ...] = ("attention", "recurrent")


@dataclass(frozen=True)
class Recorded:
    """What `recipes.attention_speed` measured, and on what."""

    processor: str
    torch: str
    found: dict[Kind, tuple[Measured, ...]]


@cache
def recorded() -> Recorded:
    """What is shown until something has been measured on this machine."""
    said = json.loads(asset("lessons", "costs", "attention_speed.json").read_text(encoding="utf-8"))
    found = {kind: tuple(Measured(**one) for one in said[kind]) for kind in COMPARISONS}
    return Recorded(said["processor"], said["torch"], found)


@lab.draws
def draw(subject: Subject) -> None:
    """The button, the curves as they come, and the table."""
    st.html(table.style())
    with controls():
        kind: Kind = lab.buttons("compared", ("heads", "layers"))
    lesson.ask(written(subject) if kind == "heads" else crossing(subject), folded=kind == "layers")
    now = speed_run.speed_run().look(kind)
    st.fragment(guarded()(_watch), run_every=POLL if now.running else None)(kind, was_running=now.running)
    if kind == "layers":
        _theory()
        return
    lesson.formula(
        r"\begin{aligned} \text{full:}\; & 2 n^2 \text{ numbers} & \text{fused:}\; & O(n d) \\ \text{window:}\; & O(n r) & "
        r"\text{linear:}\; & O(n d + d^2) \end{aligned}",
        code=CODE,
    )
    lesson.ask(doubled(subject))
    lesson.ask(crossing(subject), folded=True)


@lab.asks("bytes")
def written(subject: Subject) -> lesson.Number:
    n = len(subject.tokens)
    values = {"tokens": counts.tokens(n), "n": n, "own": f"{4 * n * n:,}", "long": labels.size(4 * 4096**2)}
    wrong = {"cells": n * n, "row": 4 * n, "half": 2 * n * n}
    said = lab.asked("bytes", subject.model, subject.text, wrong=wrong, **values)
    return lesson.Number(answer=4 * n * n, **said)


@lab.asks("doubled")
def doubled(subject: Subject) -> lesson.Choice:
    return lab.choice("doubled", ("twice", "four", "same"), "four")


@lab.asks("crossing")
def crossing(subject: Subject) -> lesson.Choice:
    times = {(one.way, one.n): one.seconds for one in recorded().found["layers"]}
    slower = [n for n in COMPARISONS["layers"].lengths if times["attention", n] > times["gru", n]]
    right = "never" if not slower else "theory" if slower[0] <= LAYER_WIDTH else "later"
    longest = max(n for way, n in times if way.startswith("gru"))
    said = {
        "d": LAYER_WIDTH,
        "n": longest,
        "gru": f"{1e3 * times['gru', longest]:.0f}",
        "attention": f"{1e3 * times['attention', longest]:.0f}",
    }
    return lab.choice("crossing", ("theory", "later", "never"), right, **said)


def _theory() -> None:
    """What Table 1 of the paper says of the two layers, counted for each of the lengths."""
    rows = []
    for n in COMPARISONS["layers"].lengths:
        own, other = (int(full_cost(kind, Sizes(n, LAYER_WIDTH))) for kind in LAYERS)
        rows.append(Row(*numbers(",", n, own, other), *numbers(".2f", other / own), *numbers(",", 1, n)))
    columns = (lab.text("place"), *lab.columns("attention", "gru", "times", "attention_steps", "gru_steps"))
    st.html(table.to_html(columns, rows, caption=lab.text("theory", d=LAYER_WIDTH)))
    lesson.formula(
        r"\begin{aligned} \text{attention:}\; & 2 n^2 d + 4 n d^2, & O(1) \text{ steps} \\"
        r" \text{GRU:}\; & 6 n d^2, & O(n) \text{ steps} \end{aligned}",
        live=rf"2 n^2 d + 4 n d^2 < 6 n d^2 \iff n < d = {LAYER_WIDTH}",
        code=LAYERS_CODE.format(d=LAYER_WIDTH, heads=LAYER_HEADS),
    )


def _watch(kind: Kind, was_running: bool) -> None:
    """Drawn again every second while it is measured."""
    now = speed_run.speed_run().look(kind)
    if now.running != was_running:
        st.rerun()  # the whole page: it asks again, or no more
    _control(kind, now)
    _results(kind, now.found or recorded().found[kind])
    if not now.found:
        seconds = f"{COMPARISONS[kind].seconds:g}"
        lab.note("recorded", processor=recorded().processor, torch=recorded().torch, seconds=seconds)


def _control(kind: Kind, now: SpeedState) -> None:
    run = speed_run.speed_run()
    seconds = f"{COMPARISONS[kind].seconds:g}"
    if now.running:
        done, of = len(now.found), len(due(kind))
        st.progress(min(1.0, done / of), text=lab.text("done", done=done, of=of))
        if presses.button(lab.text("stop"), key="costs.speed.stop"):
            run.stop(kind)
        return
    if now.ending in ENDINGS:
        st.info(lab.text(f"ending.{now.ending}", seconds=seconds))
    label, look = ("again", "secondary") if now.found else ("begin", "primary")
    with controls():
        if presses.button(lab.text(label), type=look, key="costs.speed.start"):
            run.start(kind)
            st.rerun()


def _results(kind: Kind, found: tuple[Measured, ...]) -> None:
    """What was measured until now, as curves and as a table."""
    lengths, cells = sorted({one.n for one in found}), {(one.way, one.n): one for one in found}
    ways = {way: lab.text(f"way.{way}", r=REACH) for way in (WAYS if kind == "heads" else LAYER_WAYS)}
    shown = {"time": (lab.text("milliseconds"), {place: 1e3 * one.seconds for place, one in cells.items()})}
    if kind == "heads":
        shown["memory"] = "MiB", {place: one.nbytes / 2**20 for place, one in cells.items()}
    for key, (unit, values) in shown.items():
        figure = figures.line_curves(
            np.array(lengths),
            {
                name: np.array([values[way, n] for n in lengths if (way, n) in cells])
                for way, name in ways.items()
                if (way, lengths[0]) in cells
            },
            place_title=lab.text("place"),
            value_title=unit,
            hover=lab.text("hover"),
            title=lab.text(f"curves.{key}", form=kind, d=LAYER_WIDTH),
        )
        figure.update_traces(mode="lines+markers").update_xaxes(type="log", dtick=0.30103)
        chart.show(figure.update_yaxes(type="log"), key=f"costs.speed.{kind}.{key}")
    rows = []
    for n in lengths:
        line = (cells.get((way, n)) for way in ways)
        rows.append(Row(Number(n, f"{n:,}"), *("" if one is None else _told(kind, one) for one in line)))
    st.html(table.to_html((lab.text("place"), *ways.values()), rows))
    lab.note("how", form=kind, d=LAYER_WIDTH, heads=LAYER_HEADS, n=LONGEST_BACKWARD)


def _told(kind: Kind, one: Measured) -> str:
    """A time and, of a head, the memory."""
    time = f"{1e3 * one.seconds:.2f} ms"
    return f"{time}, {labels.size(one.nbytes)}" if kind == "heads" else time
