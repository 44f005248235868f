"""The laboratory Measured: four ways of attention, as they were recorded and, at the press of a button, on this machine."""

import json
from dataclasses import dataclass
from functools import cache

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.analysis.costs.attention_speed import LENGTHS, REACH, WAYS, Measured
from vizformer.assets import asset
from vizformer.components import table
from vizformer.components.table import Number, Row
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


@dataclass(frozen=True)
class Recorded:
    """What `recipes.attention_speed` measured, and on what."""

    processor: str
    torch: str
    found: tuple[Measured, ...]


@cache
def recorded() -> Recorded:
    """What is shown until something has been measured on this machine."""
    said = json.loads(asset("lessons", "costs", "attention_speed.json").read_text(encoding="utf-8"))
    return Recorded(said["processor"], said["torch"], tuple(Measured(**one) for one in said["measured"]))


@lab.draws
def draw(subject: Subject) -> None:
    """The button, the curves as they come, and the table."""
    st.html(table.style())
    lesson.ask(written(subject))
    now = speed_run.speed_run().look()
    st.fragment(guarded()(_watch), run_every=POLL if now.running else None)(was_running=now.running)
    lesson.formula(
        r"\begin{aligned} \text{full:}\; & 2 n^2 \text{ numbers} & \text{fused:}\; & O(n d) \\ \text{window:}\; & O(n r) & "
        r"\text{linear:}\; & O(n d + d^2) \end{aligned}",
        code=CODE,
    )
    lesson.ask(doubled(subject))


@lab.asks("bytes")
def written(subject: Subject) -> lesson.Number:
    """How many bytes does the map of a head take?"""
    n = len(subject.tokens)
    values = {"tokens": counts.tokens(n), "n": n, "own": f"{4 * n * n:,}", "long": labels.size(4 * 4096**2)}
    return lesson.Number(answer=4 * n * n, **lab.asked("bytes", subject.model, subject.text, **values))


@lab.asks("doubled")
def doubled(subject: Subject) -> lesson.Choice:
    """How does the work of the fused attention grow?"""
    return lab.choice("doubled", ("twice", "four", "same"), "four")


def _watch(was_running: bool) -> None:
    """Drawn again every second while it is measured."""
    now = speed_run.speed_run().look()
    if now.running != was_running:
        st.rerun()  # the whole page: it asks again, or no more
    _control(now)
    _results(now.found or recorded().found)


def _control(now: SpeedState) -> None:
    run = speed_run.speed_run()
    if now.running:
        done, of = len(now.found), len(LENGTHS) * len(WAYS)
        st.progress(min(1.0, done / of), text=lab.text("done", done=done, of=of))
        if presses.button(lab.text("stop"), key="costs.speed.stop"):
            run.stop()
        return
    if now.ending in ENDINGS:
        st.info(lab.text(f"ending.{now.ending}"))
    label, kind = ("again", "secondary") if now.found else ("begin", "primary")
    with controls():
        if presses.button(lab.text(label), type=kind, key="costs.speed.start"):
            run.start()
            st.rerun()
        if not now.found:
            lab.note("recorded", processor=recorded().processor, torch=recorded().torch)


def _results(found: tuple[Measured, ...]) -> None:
    """What was measured until now, as curves and as a table."""
    lengths, cells = sorted({one.n for one in found}), {(one.way, one.n): one for one in found}
    ways = {way: lab.text(f"way.{way}", r=REACH) for way in WAYS}
    for key, unit, shown in (
        ("time", lab.text("milliseconds"), {place: 1e3 * one.seconds for place, one in cells.items()}),
        ("memory", "MiB", {place: one.nbytes / 2**20 for place, one in cells.items()}),
    ):
        figure = figures.line_curves(
            np.array(lengths),
            {
                name: np.array([shown[way, n] for n in lengths if (way, n) in cells])
                for way, name in ways.items()
                if (way, lengths[0]) in cells
            },
            place_title=lab.text("place"),
            value_title=unit,
            hover=lab.text("hover"),
            title=lab.text(f"curves.{key}"),
        )
        figure.update_traces(mode="lines+markers").update_xaxes(type="log", dtick=0.30103)
        chart.show(figure.update_yaxes(type="log"), key=f"costs.speed.{key}")
    rows = []
    for n in lengths:
        line = (cells.get((way, n)) for way in ways)
        texts = ("" if one is None else f"{1e3 * one.seconds:.2f} ms, {labels.size(one.nbytes)}" for one in line)
        rows.append(Row((Number(n, f"{n:,}"), *texts)))
    st.html(table.to_html((lab.text("place"), *ways.values()), rows))
    lab.note("how")
