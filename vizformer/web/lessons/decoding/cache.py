"""The laboratory KV cache: what is computed again without it, and what of that grows how."""

import streamlit as st
from numpy import ndarray

from vizformer import figures
from vizformer.analysis.costs.generation_cost import text_costs
from vizformer.analysis.decoding import ways
from vizformer.components import table
from vizformer.components.table import Number, Row, numbers
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import sitemap
from vizformer.web.lessons.decoding.writing import MOST_NEW, say_unless_writes
from vizformer.web.widgets import chart, lesson
from vizformer.web.widgets.lab import Laboratory, controls, wrong_line

lab = Laboratory("decoding", "cache")
LENGTHS = (8, 16, 32, 64, 128, 256, 512, 1024)
PARTS = ("attention", "projections", "feedforward", "unembedding")


@cached
def difference(subject: Subject) -> tuple[float, int]:
    """Between the probabilities with the cache and without, on the reader's text, and in how many steps."""
    return ways.cache_difference(subject.checkpoint, subject.text, MOST_NEW)


@lab.draws
def draw_kv_cache(subject: Subject) -> None:
    if not say_unless_writes(lab, subject):
        return
    lesson.ask(cube(subject))
    config = subject.config
    memory = len(subject.trace.tokens["encoder"]) if config.n_encoder_layers else 0
    with controls():
        n = lab.steps("n", LENGTHS, 64)
    drawn = min(n, 64)
    costs, title = text_costs(config, 1, drawn, memory), lab.text("multiplications", n=drawn)
    figure = figures.multiplications(costs.cached, costs.uncached, title=title)
    chart.show(figure, key="decoding.multiplications")
    without, kept = ways.growth(config, n, memory)
    names = lab.texts("part", PARTS).values()
    rows = [Row(name, *_pair(without[:, part]), *_pair(kept[:, part])) for part, name in enumerate(names)]
    rows.append(Row(lab.text("part.together"), *_pair(without.sum(1)), *_pair(kept.sum(1)), kind="sum"))
    times = lab.text("times")
    columns = (lab.text("part.label"), lab.text("without", n=n), times, lab.text("with", n=n), times)
    st.html(table.style() + table.to_html(columns, rows))
    lab.note("growth")
    error, steps = difference(subject)
    st.success(lab.text("checked", steps=steps, error=f"{error:.1e}"))
    lesson.formula(
        r"\underbrace{\sum_{t=1}^{n} t^2}_{\text{without}} \approx \tfrac{n^3}{3} \qquad "
        r"\underbrace{\sum_{t=1}^{n} t}_{\text{with}} \approx \tfrac{n^2}{2}",
        live=rf"{sum(t * t for t in range(1, n + 1)):,} \qquad {sum(range(1, n + 1)):,}".replace(",", "{,}"),
        code=f"n = {n}\nt = torch.arange(1, n + 1)\nwithout, kept = (t**2).sum(), t.sum()  # dot products per head",
    )
    st.page_link(sitemap.GENERATION.file, label=lab.text("whole"))
    lesson.ask(line(subject), folded=True)


@lab.asks("cube")
def cube(subject: Subject) -> lesson.Choice:
    return lab.options("cube", 8, {"steps": 2, "map": 4})


@lab.asks("line")
def line(subject: Subject) -> lesson.Choice:
    return wrong_line(lab, "cache")


def _pair(values: ndarray) -> tuple[Number, ...]:
    """The number at n, and how many times as large it is at 2n."""
    at_n, at_2n = values
    return *numbers(",", at_n), *numbers(".1f", at_2n / at_n)
