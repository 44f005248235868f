"""The laboratory What heads cost: few or many of the same width."""

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.analysis.costs import head_sharing
from vizformer.analysis.costs.head_sharing import LayerCost
from vizformer.components import table
from vizformer.components.table import Number, Row
from vizformer.messages import ranges
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.heads.token_count import asked_length, tex_number
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.widgets import chart, cost_notes, lesson
from vizformer.web.widgets.lab import Laboratory, controls
from vizformer.web.words import counts, labels

lab = Laboratory("heads", "cost")
COUNTS = ("projections", "products", "exponentials")


@cached
def layer_costs(model: ModelRef, n: int) -> tuple[LayerCost, ...]:
    """One layer of the model cut into 1, 2, 4, ... heads, each with its own keys and values."""
    config = model_cache.options(model)
    cuts = (head_sharing.with_heads(config, heads) for heads in head_sharing.possible_heads(config))
    return tuple(head_sharing.layer_cost(cut, n) for cut in cuts)


@lab.draws
def draw(subject: Subject) -> None:
    config = subject.config
    if cost_notes.draw_no_attention(config):
        return
    st.html(table.style())
    with controls():
        n = asked_length(lab, "n", len(subject.tokens))
        costs = layer_costs(subject.model, n)
        numbers = [one.n_heads for one in costs]
        h = lab.steps("h", numbers, config.n_heads) if len(numbers) > 1 else config.n_heads
    chosen, title = costs[numbers.index(h)], lab.text("layer", n=f"{n:,}")
    lines = {name: np.array([getattr(one, name) for one in costs]) for name in COUNTS}
    lesson.ask(question(subject), folded=True)
    chart.show(figures.head_costs(numbers, lines, at=h, title=title), key="heads.costs")
    d, w = config.d_model, config.n_heads * config.d_head  # the same width, but for models that say otherwise
    square, wide, live, also = (
        (r"d_\mathrm{model}^2", r"d_\mathrm{model}", f"{d}^2", "")
        if d == w
        else (r"d_\mathrm{model} w", "w", rf"{d} \cdot {w}", r",\quad w = h\, d_\mathrm{head}")
    )
    lesson.formula(
        rf"\underbrace{{4 n\, {square}}}_{{W_Q, W_K, W_V, W_O}} + "
        rf"\underbrace{{2 n^2\, {wide}}}_{{q \cdot k,\ a v}} \qquad \underbrace{{h\, n^2}}_{{\exp}}{also}",
        live=rf"\begin{{aligned}} 4 \cdot {n} \cdot {live} + 2 \cdot {n}^2 \cdot {w} &= "
        rf"{tex_number(chosen.projections + chosen.products)} \\ {h} \cdot {n}^2 &= {tex_number(chosen.exponentials)} "
        r"\end{aligned}",
        code=f"n, d_model, width, h = {n}, {d}, {w}, {h}\n"
        "multiplications = 4 * n * d_model * width + 2 * n**2 * width\nentries = h * n**2",
    )
    rows = [
        Row(
            Number(one.n_heads, str(one.n_heads)),
            Number(one.d_head, str(one.d_head)),
            *(Number(value, f"{value:,}") for value in (one.projections + one.products, one.exponentials)),
            Number(one.map_bytes, labels.size(one.map_bytes)),
            Number(one.model_parameters, f"{one.model_parameters:,}"),
            kind="marked" if one.n_heads == h else "",
        )
        for one in costs
    ]
    columns = lab.columns("heads", "width", "products", "entries", "bytes", "parameters")
    st.html(table.to_html(columns, rows))
    if config.kv_heads != config.n_heads:
        lab.note("shares")
    if config.wide_layers is not None:
        lab.note("wide", layers=ranges(config.wide_layers), width=config.wide_head_dim, d_head=config.d_head)


@lab.asks("cost")
def question(subject: Subject) -> lesson.Choice | None:
    config, n = subject.config, len(subject.tokens)
    if config.only_states:
        return None
    costs = {one.n_heads: one.projections + one.products for one in layer_costs(subject.model, n)}
    if len(costs) < 2:  # an odd width: there is one way to cut it
        return None
    h = config.n_heads
    other = 1 if h > 1 else max(costs)
    times, right = max(h, other), costs[other]
    return lab.options(
        "cost",
        right,
        {"less": right // times, "more": right * times},
        subject,
        written="{:,}".format,
        tokens=counts.tokens(n),
        heads=counts.heads(h),
        width=config.d_head,
        count=f"{costs[h]:,}",
        other=other,
        other_width=h * config.d_head // other,
        here=f"{h * n * n:,}",
        there=f"{other * n * n:,}",
    )
