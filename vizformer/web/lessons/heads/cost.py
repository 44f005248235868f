"""The laboratory What heads cost: few or many of the same width."""

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.components import table
from vizformer.components.table import Number, Row
from vizformer.figures import head_sharing
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.heads import computations
from vizformer.web.lessons.heads.token_count import asked_length, tex_number
from vizformer.web.widgets import chart, lesson
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words import counts, labels
from vizformer.web.words.figure_words import words
from vizformer.web.words.i18n import _

COUNTS = ("projections", "products", "exponentials")


@laboratory
def cost(subject: Subject) -> None:
    """The same width in few heads or many: what one layer of self-attention costs."""
    st.html(table.style())
    config = subject.config
    lesson.ask(cost_question(subject))
    n = asked_length("heads.n", len(subject.tokens))
    costs = computations.layer_costs(subject.model, n)
    numbers = [one.n_heads for one in costs]
    h = st.select_slider(_("Heads"), numbers, **lesson.setting("heads.h", config.n_heads, numbers))
    chosen = costs[numbers.index(h)]
    chart.show(
        figures.head_costs(
            numbers,
            {name: np.array([getattr(one, name) for one in costs]) for name in COUNTS},
            at=h,
            title=_("One layer of self-attention, {n} tokens", n=f"{n:,}"),
            words=words(head_sharing.ENGLISH),
        ),
        key="heads.costs",
    )
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
    columns = (
        _("heads"),
        _("width of each"),
        _("multiplications"),
        _("entries of the maps"),
        _("as bytes"),
        _("parameters of the model"),
    )
    rows = [
        Row(
            (
                Number(one.n_heads, str(one.n_heads)),
                Number(one.d_head, str(one.d_head)),
                *(Number(value, f"{value:,}") for value in (one.projections + one.products, one.exponentials)),
                Number(one.map_bytes, labels.size(one.map_bytes)),
                Number(one.model_parameters, f"{one.model_parameters:,}"),
            ),
            "marked" if one.n_heads == h else "",
        )
        for one in costs
    ]
    st.html(table.to_html(columns, rows))
    if config.kv_heads != config.n_heads:
        st.caption(
            _(
                "Counted with keys and values of its own for every head. This model shares them, which is cheaper: the "
                "next part."
            )
        )


def cost_question(subject: Subject) -> lesson.Choice:
    """The question: what would one wide head cost?"""
    config, n = subject.config, len(subject.tokens)
    costs = {one.n_heads: one.projections + one.products for one in computations.layer_costs(subject.model, n)}
    h = config.n_heads
    other = 1 if h > 1 else max(costs)
    times = max(h, other)
    right = costs[other]
    values = sorted({right, right // times, right * times})
    return lesson.Choice(
        "heads",
        "cost",
        _(
            "Your text has {tokens}: one layer with {heads} of width {width} needs {count} multiplications in its matrix "
            "products. How many with {other} of width {other_width}?",
            tokens=counts.tokens(n),
            heads=counts.heads(h),
            width=config.d_head,
            count=f"{costs[h]:,}",
            other=other,
            other_width=h * config.d_head // other,
        ),
        [f"{value:,}" for value in values],
        values.index(right),
        _(
            "As many: each head does the same on a slice that is that much narrower. What grows with the number of heads "
            "is the number of maps: {here} entries here, {there} there.",
            here=f"{h * n * n:,}",
            there=f"{other * n * n:,}",
        ),
        about=f"{subject}",
    )
