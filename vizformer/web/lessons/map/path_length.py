"""A laboratory of the lesson The map: Table 1 of the paper, how far apart two tokens are and what a layer costs."""

from dataclasses import dataclass

import numpy as np
import streamlit as st
from jaxtyping import Int

from vizformer import figures
from vizformer.analysis.costs import layer_types
from vizformer.analysis.costs.layer_types import LAYER_TYPES, LayerType
from vizformer.config import ModelConfig
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.widgets import chart, lesson
from vizformer.web.widgets.lab import Laboratory, controls
from vizformer.web.words import counts, labels

lab = Laboratory("map", "rnn")
DRAWN = 40  # tokens in the picture
FORMULAS: dict[LayerType, str] = {  # (plain text: LaTeX in a table takes the browser longer than all the rest)
    "attention": "1",
    "recurrent": "n",
    "contiguous": "max(1, ⌈(n−1)/(k−1)⌉)",
    "dilated": "max(1, ⌈logₖ n⌉)",
    "restricted": "max(1, ⌈(n−1)/(r−1)⌉)",
}
COSTS: dict[LayerType, str] = {
    "attention": "n²d",
    "recurrent": "nd²",
    "contiguous": "knd²",
    "dilated": "knd²",
    "restricted": "min(r, n) nd",
}
"""The column "Complexity per Layer" of the paper's Table 1."""
ATTENTION = """n, d_head = {n}, {d_head}
q, k, v = torch.randn(3, n, d_head)
z = torch.softmax(q @ k.T / d_head**0.5, -1) @ v  # [n, n] @ [n, d_head]: every pair at once"""
RECURRENT = """n, d = {n}, {d}
x = torch.randn(n, d)
h = torch.zeros(d)
cell = torch.nn.GRUCell(d, d)
for t in range(n):  # n times, one after the other
    h = cell(x[t], h)"""
DILATED = "next(layers for layers in range(1, n + 1) if k**layers >= n)"


@dataclass(frozen=True)
class Path:
    """A layer type's picture: levels above the input, who hears from whom, and the way from the first token."""

    levels: int
    edges: Int[np.ndarray, "edges 4"]
    way: Int[np.ndarray, "steps 2"]


@cached
def path(kind: LayerType, n: int, k: int, r: int) -> Path:
    edges, way = layer_types.connections(kind, n, k, r), layer_types.longest_path(kind, n, k, r)
    return Path(layer_types.reach(kind, n, k, r).layers, edges, way)


@lab.draws
def draw_path_length(subject: Subject) -> None:
    tokens = labels.texts(subject.tokens)
    n, shown = len(tokens), tokens[:DRAWN]
    lesson.ask(path_length_question(subject))
    with controls():
        kind = lab.buttons("kind", LAYER_TYPES, "recurrent")
    picture = st.container()
    with controls():  # (of the table, too)
        k, r = lab.slider("k", 2, 9, 3), lab.slider("r", 2, 32, 8)
    drawn = path(kind, len(shown), k, r)
    states, title = kind == "recurrent", lab.text("way")
    with picture:
        chart.show(
            figures.path_picture(shown, drawn.levels, drawn.edges, drawn.way, states=states, title=title),
            key="map.path",
        )
    if n > len(shown):
        lab.note("first", shown=len(shown), n=n)
    lesson.ask(cost(subject), folded=True)  # the table below gives it away
    st.markdown(_table(n, subject.config.d_model, k, r))
    _formula(kind, n, k, r, subject.config)


@lab.asks("path")
def path_length_question(subject: Subject) -> lesson.Choice | None:
    if len(subject.tokens) < 2:  # nothing to be far from
        return None
    n, k = 10 * len(subject.tokens), 5
    layers, dilated = (layer_types.reach(kind, n, k, k).layers for kind in ("contiguous", "dilated"))
    wrong = {"dilated": dilated, "order": -(-n // k), "each": n}
    values = {"k": k, "n": n, "reach": k - 1, "last": n - 1, "layers": layers, "dilated": dilated}
    return lab.options("path", layers, wrong, subject.model, subject.text, written="{:,}".format, **values)


@lab.asks("cost")
def cost(subject: Subject) -> lesson.Choice:
    n, d = len(subject.tokens), subject.config.d_model
    own, other = (layer_types.table_cost(kind, n, d) for kind in ("attention", "recurrent"))
    right = "attention" if own < other else "recurrent" if own > other else "neither"
    values = {"tokens": counts.tokens(n), "d": d, "own": own, "other": other}
    return lab.choice("cost", ("attention", "recurrent", "neither"), right, subject.model, subject.text, **values)


def _table(n: int, d: int, k: int, r: int) -> str:
    """The five kinds side by side, as Markdown."""
    head = [lab.text("yours", tokens=counts.tokens(n), d=d), *lab.columns("layers", "sequential", "path", "cost")]
    rows = []
    for kind, formula in FORMULAS.items():
        found = layer_types.reach(kind, n, k, r)
        name, multiplied = lab.text(f"kind.{kind}"), layer_types.table_cost(kind, n, d, k, r)
        path = f"{formula} = **{found.path}**"
        rows.append(f"| {name} | {found.layers} | {found.sequential} | {path} | {COSTS[kind]} = {multiplied:,} |")
    return "\n".join([f"| {' | '.join(head)} |", "|---|--:|--:|--:|--:|", *rows])


def _formula(kind: LayerType, n: int, k: int, r: int, config: ModelConfig) -> None:
    """The longest path of the chosen kind, with the numbers (a single token is not far from anything: without)."""
    steps = layer_types.reach(kind, n, k, r).path
    if kind == "attention":
        symbols, code = r"\text{path} = 1", ATTENTION.format(n=n, d_head=config.d_head)
        live = rf"z_{{{n - 1}}} = \sum_{{j=0}}^{{{n - 1}}} w_{{{n - 1},j}}\, v_j"
    elif kind == "recurrent":
        symbols, code = r"h_t = f(x_t, h_{t-1}), \qquad \text{path} = n", RECURRENT.format(n=n, d=config.d_model)
        live = _unrolled(n)
    elif kind == "dilated":
        symbols, code = r"\text{path} = \lceil \log_k n \rceil", DILATED
        live = rf"\lceil \log_{{{k}}} {n} \rceil = {steps}"
    else:
        width, name = (k, "k") if kind == "contiguous" else (r, "r")
        symbols = rf"\text{{path}} = \left\lceil \tfrac{{n - 1}}{{{name} - 1}} \right\rceil"
        code = f"max(1, math.ceil((n - 1) / ({name} - 1)))"
        live = rf"\left\lceil \tfrac{{{n} - 1}}{{{width} - 1}} \right\rceil = {steps}"
    lesson.formula(symbols, live=live if n > 1 else "", code=code, given={"n": n, "k": k, "r": r})


def _unrolled(n: int) -> str:
    """The last state with all cells that the first token passes through, as LaTeX."""
    shown = [f"f(x_{{{t}}}, " for t in range(n - 1, -1, -1)]
    inner = "".join(shown) if n <= 3 else f"{shown[0]}{shown[1]}\\dots {shown[-1]}"
    state = rf"h_{{{n - 1}}} = {inner}h_{{-1}}{')' * min(n, 3)}"
    return rf"\begin{{gathered}} {state} \\ \text{{path}} = {n} \end{{gathered}}"  # two lines: they fit a phone
