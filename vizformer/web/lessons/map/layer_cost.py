"""A laboratory of the lesson The map: the multiplications of a layer against the number of tokens."""

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.analysis.costs import layer_types
from vizformer.analysis.costs.layer_types import LayerType, Sizes, full_cost, table_cost
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import sitemap
from vizformer.web.widgets import chart, lesson
from vizformer.web.widgets.lab import Laboratory, controls
from vizformer.web.words import counts

lab = Laboratory("map", "cost")
FORMULAS: dict[LayerType, tuple[str, str]] = {  # in the paper's table, and of every matrix product
    "attention": ("n²d", "2n²d + 4nd²"),
    "recurrent": ("nd²", "6nd² (GRU)"),
    "contiguous": ("knd²", "knd²"),
    "restricted": ("min(r, n) nd", "2 min(r, n) nd + 4nd²"),
}


def cost(kind: LayerType, sizes: Sizes, full: bool) -> int:
    """Multiplications of a layer: as in the paper's table, or of every matrix product."""
    return int((full_cost if full else table_cost)(kind, sizes))


@cached
def curves(d: int, k: int, r: int, full: bool) -> tuple[np.ndarray, dict[LayerType, np.ndarray]]:
    """Numbers of tokens, and what each layer type costs at them (the two convolutions cost the same)."""
    return layer_types.cost_curves(d, k, r, full=full)


@lab.draws
def draw(subject: Subject) -> None:
    n, d = len(subject.tokens), subject.config.d_model
    lesson.ask(question(subject), folded=True)  # first: the table below gives it away
    with controls():
        full = lab.buttons("count", ("table", "products")) == "products"
        k, r = lab.slider("k", 2, 9, 3), lab.slider("r", 2, 32, 8)
    grid, found = curves(d, k, r, full)
    chart.show(
        figures.cost_curves(
            grid,
            {lab.text(f"kind.{kind}"): curve for kind, curve in found.items()},
            here=n,
            crossing=(d, cost("attention", Sizes(d, d, k, r), full)),
            crossing_name=lab.text("crossing", d=d),
            title=lab.text("layer", d=d),
        ),
        key="map.costs",
    )
    sizes = Sizes(n, d, k, r)
    st.markdown(_table(sizes, full))
    own, other = (cost(kind, sizes, full) for kind in ("attention", "recurrent"))
    sign = "<" if own < other else ">" if own > other else "="
    compared, code = (
        ("2n^2d + 4nd^2 < 6nd^2", "2 * n**2 * d + 4 * n * d**2 < 6 * n * d**2")
        if full
        else ("n^2 d < n d^2", "n**2 * d < n * d**2")
    )
    st.page_link(
        sitemap.COSTS.file, query_params={"part": "measured", "dials": "costs.compared:layers"}, label=lab.text("timed")
    )
    lesson.formula(rf"{compared} \iff n < d", live=f"{own} {sign} {other}", code=code, given={"n": n, "d": d})


@lab.asks("cost")
def question(subject: Subject) -> lesson.Choice:
    n, d = len(subject.tokens), subject.config.d_model
    own, other = (cost(kind, Sizes(n, d), full=False) for kind in ("attention", "recurrent"))
    right = "attention" if own < other else "recurrent" if own > other else "neither"
    values = {"tokens": counts.tokens(n), "d": d, "own": own, "other": other}
    return lab.choice("cost", ("attention", "recurrent", "neither"), right, subject.model, subject.text, **values)


def _table(sizes: Sizes, full: bool) -> str:
    """The column of costs, for this sentence and width, as Markdown."""
    own = cost("attention", sizes, full)
    rows = []
    for kind, formulas in FORMULAS.items():
        value = cost(kind, sizes, full)
        rows.append(f"| {lab.text(f'kind.{kind}')} | {formulas[full]} | {value:,} | {value / own:.3g} × |")
    names = lab.columns("cost", "multiplications", "against")
    return "\n".join([f"| {' | '.join([f'n = {sizes.n:g}, d = {sizes.d}', *names])} |", "|---|:-:|--:|--:|", *rows])
