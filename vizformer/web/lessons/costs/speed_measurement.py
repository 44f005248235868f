"""The laboratory Measured: four ways of attention on this machine, when somebody presses the button."""

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.analysis.costs.attention_speed import LENGTHS, REACH, WAYS, Measured, Way
from vizformer.components import table
from vizformer.components.table import Number, Row
from vizformer.web.catalogue import speed_run
from vizformer.web.catalogue.speed_run import SpeedState
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import presses
from vizformer.web.widgets import chart, lesson
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words import counts, labels
from vizformer.web.words.errors import guarded
from vizformer.web.words.i18n import _

POLL = 1.0  # seconds between two looks at a measurement that goes on
CODE = """n, d = 1024, 64
q, k, v = torch.randn(3, n, d)
full = torch.softmax(q @ k.T / d**0.5, -1) @ v  # [n, n] is written down
fused = F.scaled_dot_product_attention(q[None, None], k[None, None], v[None, None])[0, 0]
same = torch.allclose(full, fused, atol=1e-5)"""


@laboratory
def measured(subject: Subject) -> None:
    """The button, the curves as they come, and the table."""
    st.html(table.style())
    lesson.ask(bytes_question(subject))
    now = speed_run.speed_run().look()
    st.fragment(guarded()(_watch), run_every=POLL if now.running else None)(was_running=now.running)
    lesson.formula(
        r"\begin{aligned} \text{full:}\; & 2 n^2 \text{ numbers} & \text{fused:}\; & O(n d) \\ \text{window:}\; & O(n r) & "
        r"\text{linear:}\; & O(n d + d^2) \end{aligned}",
        code=CODE,
    )
    lesson.ask(doubled_question())


def doubled_question() -> lesson.Choice:
    return lesson.Choice(
        "costs",
        "doubled",
        _("A text twice as long. How many multiplications does the fused attention need then, which keeps no map?"),
        [_("twice as many"), _("four times as many"), _("as many as before")],
        1,
        _(
            "It still multiplies every query with every key: n² products. What it saves is memory, and the time to write "
            "and read it. Only the window and the linear form do less arithmetic. The time grows as much once texts are "
            "long; with short texts every call takes about the same time, as the curves show."
        ),
    )


def _watch(was_running: bool) -> None:
    """Drawn again every second while it is measured."""
    run = speed_run.speed_run()
    now = run.look()
    if now.running != was_running:
        st.rerun()  # the whole page: it asks again, or no more
    _control(now)
    if now.found:
        _curves(now.found)
        _table(now.found)


def _control(now: SpeedState) -> None:
    run = speed_run.speed_run()
    if now.running:
        done, of = len(now.found), len(LENGTHS) * len(WAYS)
        st.progress(min(1.0, done / of), text=_("{done} of {of} measured", done=done, of=of))
        if presses.button(_("Stop"), key="costs.speed.stop"):
            run.stop()
        return
    said = {
        "": _(
            "Nothing has been measured on this machine yet. It takes about half a minute, and the page stays usable."
        ),
        "time": _("Half a minute is over; what is missing took too long here."),
        "stopped": _("Stopped. What was measured until then is below."),
        "abandoned": _("Nobody was watching any more, so it ended."),
        "failed": _("The measurement broke off. Whoever runs this server finds the reason in its log."),
    }
    if now.ending in said:
        st.info(said[now.ending])
    label = _("Measure again") if now.found else _("Measure on this machine")
    if presses.button(label, type="secondary" if now.found else "primary", key="costs.speed.start"):
        run.start()
        st.rerun()


def names() -> dict[Way, str]:
    """What the ways are called."""
    return {
        "full": _("full, step by step"),
        "fused": _("fused into one call"),
        "windowed": _("window of {r} on each side", r=REACH),
        "linear": _("linear"),
    }


def _curves(found: tuple[Measured, ...]) -> None:
    lengths = sorted({one.n for one in found})
    for what, title, unit, key in (
        ({(one.way, one.n): 1e3 * one.seconds for one in found}, _("Time of a call"), _("milliseconds"), "time"),
        ({(one.way, one.n): one.nbytes / 2**20 for one in found}, _("Memory beside the input"), "MiB", "memory"),
    ):
        curves = {
            name: np.array([what[way, n] for n in lengths if (way, n) in what])
            for way, name in names().items()
            if (way, lengths[0]) in what
        }
        figure = figures.line_curves(
            np.array(lengths),
            curves,
            place_title=_("tokens n"),
            value_title=unit,
            hover=_("{name}, {place} tokens: {value}"),
            title=title,
        )
        figure.update_traces(mode="lines+markers").update_xaxes(type="log", dtick=0.30103)
        chart.show(figure.update_yaxes(type="log"), key=f"costs.speed.{key}")


def _table(found: tuple[Measured, ...]) -> None:
    lengths = sorted({one.n for one in found})
    cells = {(one.way, one.n): one for one in found}
    rows = []
    for n in lengths:
        row: list[str | Number] = [Number(n, f"{n:,}")]
        for way in names():
            one = cells.get((way, n))
            row.append("" if one is None else f"{1e3 * one.seconds:.2f} ms, {labels.size(one.nbytes)}")
        rows.append(Row(tuple(row)))
    st.html(table.to_html((_("tokens n"), *names().values()), rows))
    st.caption(
        _(
            "One head of width 64 without a mask, float32, one thread, random numbers; the median of five calls after "
            "one that does not count. Memory is the most that PyTorch held at a time. The process has a low priority, "
            "and what else runs on the machine shows."
        )
    )


def bytes_question(subject: Subject) -> lesson.Number:
    n = len(subject.tokens)
    return lesson.Number(
        "costs",
        "bytes",
        _(
            "Computed step by step, one head writes its n × n weights down, 4 bytes each. Your text has {tokens}: "
            "how many bytes are that?",
            tokens=counts.tokens(n),
        ),
        4 * n * n,
        _(
            "4·{n}² = {own}. At 4,096 tokens it is {long}, and the scores before the softmax take as much again.",
            n=n,
            own=f"{4 * n * n:,}",
            long=labels.size(4 * 4096**2),
        ),
        about=f"{subject.model} {subject.text}",
    )
