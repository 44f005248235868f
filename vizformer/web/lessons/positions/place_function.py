"""A laboratory of the lesson Positions: a position enters as f(x, m); a pair of tokens moved on under every scheme."""

import html

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.analysis import positions
from vizformer.components import table
from vizformer.components.table import Number, Row
from vizformer.options import Positions
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.positions.sinusoid import SCHEMES, choose_pair, small, words_only
from vizformer.web.widgets import chart, lesson
from vizformer.web.widgets.lab import Laboratory, controls
from vizformer.web.words import labels

lab = Laboratory("positions", "function")
HEAD, FURTHEST, KEPT = 0, 48, 1e-3  # of the first layer; moves that are shown; a change so small is rounding
OFFERED: tuple[Positions, ...] = ("rope", "alibi", "sinusoidal", "none")  # to choose from
DRAWING = """<style>.vf-place {{ display: grid; grid-template-columns: auto auto auto; gap: 0.5rem 1rem;
align-items: center; justify-content: start }} .vf-place span {{ border: 1px solid currentColor; border-radius: 6px;
padding: 0.35rem 0.7rem; text-align: center }} .vf-place b {{ font-weight: normal; white-space: nowrap }}</style>
<div class="vf-place" role="img" aria-label="{said}">
<b>{query}, m = {m} →</b><span>f<sub>q</sub>(x, m)</span><b>→ q<sub>m</sub> ↘</b>
<b></b><b></b><span>q<sub>m</sub> · k<sub>n</sub></span>
<b>{key}, n = {n} →</b><span>f<sub>k</sub>(x, n)</span><b>→ k<sub>n</sub> ↗</b></div>"""


@cached
def moved_scores(subject: Subject, m: int, n: int) -> dict[Positions, np.ndarray]:
    """The score of the pair (m, n) of the text's words under each scheme, where both are moved on by 0, 1, ... places."""
    query, key, vocab_size = words_only(subject)[m].id, words_only(subject)[n].id, subject.config.input_vocab_size
    return {
        scheme: positions.moved_scores(small(scheme, vocab_size, True, trained=True), query, key, m - n, FURTHEST)[HEAD]
        for scheme in SCHEMES
    }


@lab.draws
def draw_place_function(subject: Subject) -> None:
    numbered = labels.numbered(words_only(subject))
    with controls():
        m, n = choose_pair(lab, numbered)
    shown = {"query": numbered[m], "key": numbered[n]}
    escaped = {name: html.escape(text[:12]) for name, text in shown.items()}
    st.html(DRAWING.format(said=html.escape(lab.text("picture"), quote=True), m=m, n=n, **escaped))
    scores, names = moved_scores(subject, m, n), lab.texts("scheme", SCHEMES)
    lesson.ask(place_function_question(subject, m, n))
    chart.show(
        figures.line_curves(
            np.arange(FURTHEST + 1),
            {names[scheme]: values for scheme, values in scores.items()},
            title=lab.text("moved", **shown),
            place_title=lab.text("place"),
            value_title=lab.text("score"),
            hover=lab.text("hover"),
        ),
        key="positions.moved",
    )
    changes = {scheme: float(np.ptp(values)) for scheme, values in scores.items()}
    rows = [
        Row(names[scheme], lab.text(f"function.{scheme}"), Number(change, f"{change:.2g}"))
        for scheme, change in changes.items()
    ]
    columns = ("", *lab.columns("query", "change"))
    st.html(table.style() + table.to_html(columns, rows, caption=lab.text("what")))
    lesson.formula(
        r"f_q(x_m, m) \cdot f_k(x_n, n) = g(x_m, x_n, m - n)",
        live=rf"f(x, {m}) = R_{{{m}}} W_Q\, x \;\Rightarrow\; q_{{{m}}} \cdot k_{{{n}}} = "
        rf"(W_Q x)^\top R_{{{n - m}}} W_K x'",
        code="theta = 0.3\n"
        "R = lambda m: torch.tensor([[math.cos(m * theta), -math.sin(m * theta)], "
        "[math.sin(m * theta), math.cos(m * theta)]])\n"
        "q, k = torch.randn(2, 2)  # W_Q x and W_K x', without a place\n"
        f"here, moved = (R({m} + s) @ q @ (R({n} + s) @ k) for s in (0, 10))\n"
        "same = torch.allclose(here, moved, atol=1e-5)",
    )
    lab.note("model")


@lab.asks("moved")
def place_function_question(subject: Subject, m: int | None = None, n: int = 0) -> lesson.Choice | None:
    scores = moved_scores(subject, len(words_only(subject)) - 1 if m is None else m, n)
    change = {scheme: float(np.ptp(scores[scheme])) for scheme in OFFERED}
    changing, names = max(OFFERED, key=change.__getitem__), lab.texts("scheme", OFFERED)
    if change[changing] < KEPT:
        return None
    values = {"scheme": names[changing], "change": f"{change[changing]:.2g}"}
    wrong = {scheme: index for index, scheme in enumerate(OFFERED) if scheme != changing}
    said = lab.asked("moved", subject.model, subject.text, wrong=wrong, **values)
    return lesson.Choice(choices=list(names.values()), answer=OFFERED.index(changing), **said)
