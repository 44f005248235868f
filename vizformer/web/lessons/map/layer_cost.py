"""What a layer costs, in the lesson The map: its multiplications against the number of tokens."""

import streamlit as st

from vizformer import figures
from vizformer.figures import reach as reach_figures
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.map import computations, layer_types
from vizformer.web.widgets import chart, lesson
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words import counts
from vizformer.web.words.figure_words import words
from vizformer.web.words.i18n import _


@laboratory
def cost(subject: Subject) -> None:
    """The multiplications of a layer against the number of tokens."""
    n, d = computations.lengths(subject)[0], subject.config.d_model
    lesson.ask(cost_question(subject))  # first: the table below gives it away
    ways = {"table": _("the paper's table"), "products": _("every matrix product")}
    counted = st.segmented_control(
        _("Count"),
        list(ways),
        format_func=ways.__getitem__,
        required=True,
        **lesson.setting("map.count", "table", tuple(ways)),
    )
    k, r = layer_types.widths()
    full = counted == "products"
    grid, curves = computations.cost_curves(d, k, r, full)
    titles = layer_types.names()
    chart.show(
        figures.cost_curves(
            grid,
            {titles[kind]: curve for kind, curve in curves.items()},
            here=n,
            crossing=(d, computations.cost("attention", d, d, k, r, full)),
            crossing_name=_("n = d = {d}", d=d),
            title=_("Multiplications of a layer that is d = {d} wide", d=d),
            words=words(reach_figures.ENGLISH),
        ),
        key="map.costs",
    )
    st.markdown(layer_types.cost_table(n, d, k, r, full))
    layer_types.cost_formula(n, d, full)


def cost_question(subject: Subject) -> lesson.Choice:
    """Which layer needs fewer multiplications, by the paper's table?"""
    n, d = computations.lengths(subject)[0], subject.config.d_model
    own = computations.cost("attention", n, d, 3, 8, full=False)  # (neither depends on kernel or window)
    other = computations.cost("recurrent", n, d, 3, 8, full=False)
    choices = [_("the self-attention layer"), _("the recurrent layer"), _("neither: both need the same")]
    return lesson.Choice(
        "map",
        "cost",
        _(
            "Your sentence has {tokens}, the model is d = {d} wide. By the paper's table, which layer needs fewer "
            "multiplications?",
            tokens=counts.tokens(n),
            d=d,
        ),
        choices,
        0 if own < other else 1 if own > other else 2,
        _(
            "Self-attention: n²d = {own:,}. Recurrent: nd² = {other:,}. They are equal where n = d, here at {d} tokens.",
            own=own,
            other=other,
            d=d,
        ),
        about=f"{subject.model} {subject.text}",
    )
