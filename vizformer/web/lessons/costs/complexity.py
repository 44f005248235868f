"""The laboratory Complexity: Table 1 of the paper for the typed sentence, and where self-attention is the cheaper layer."""

import streamlit as st

from vizformer.analysis.costs.layer_types import RowKind, table_one
from vizformer.components import table
from vizformer.components.table import Number, Row
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.costs import sizes
from vizformer.web.widgets import lesson
from vizformer.web.widgets.lab import Laboratory, controls
from vizformer.web.words import counts

lab = Laboratory("costs", "complexity")
FORMULAS: dict[RowKind, tuple[str, str]] = {
    "attention": ("n²·d", "1"),
    "recurrent": ("n·d²", "n"),
    "convolution": ("k·n·d²", "max(1, logₖ n)"),
    "restricted": ("min(r, n)·n·d", "max(1, n/r)"),
    "contiguous": ("k·n·d²", "max(1, n/k)"),
    "separable": ("k·n·d + n·d²", "max(1, logₖ n)"),
}
"""What a layer costs, and the longest path between two of its tokens."""
ASKED = ("recurrent", "convolution", "attention", "restricted")
VERDICTS = {"<": "less", ">": "more", "=": "same"}


@lab.draws
def draw(subject: Subject) -> None:
    d = subject.config.d_model
    lesson.ask(times(subject), path(subject), folded=True)  # first: the table below gives both away
    with controls():
        n = sizes.length(lab, "n", len(subject.tokens))
        k, r = lab.slider("k", 2, 9, 3), lab.slider("r", 1, 64, 8)
    found, names = table_one(n, d, k, r), lab.texts("layer", tuple(FORMULAS))
    least = min(one.per_layer for one in found)
    rows = [
        Row(
            names[one.kind],
            f"{FORMULAS[one.kind][0]} = {one.per_layer:,}",
            Number(one.sequential, f"n = {n:,}" if one.sequential > 1 else "1"),
            FORMULAS[one.kind][1] + ("" if one.kind == "attention" else f" = {one.path:,.3g}"),
            kind="marked" if one.per_layer == least else "",
        )
        for one in found
    ]
    columns = lab.columns("layer", "per_layer", "sequential", "path")
    caption = lab.text("with", n=f"{n:,}", d=d, k=k, r=r)
    st.html(table.style() + table.to_html(columns, rows, caption=caption))
    lab.note("rows")
    sign = sizes.compared(n, d)
    lab.say("verdict", form=VERDICTS[sign], n=f"{n:,}", d=f"{d:,}", times=f"{max(n, d) / min(n, d):.3g}")
    lesson.formula(
        r"n^2 d < n d^2 \iff n < d",
        live=rf"{n * n * d:,} {sign} {n * d * d:,}".replace(",", "{,}"),
        code="attention, recurrent = n * n * d, n * d * d\n"
        "convolution, restricted = k * n * d * d, min(r, n) * n * d\n"
        "path = max(1, math.log(n) / math.log(k))  # of the dilated convolution",
        given={"n": n, "d": d, "k": k, "r": r},
    )


@lab.asks("times")
def times(subject: Subject) -> lesson.Number:
    n, d = len(subject.tokens), subject.config.d_model
    about = (subject.model, subject.text)
    said = lab.asked(
        "times",
        *about,
        wrong={"turned": n / d, "product": n * d, "width": d},
        tokens=counts.tokens(n),
        n=n,
        d=d,
        times=f"{d / n:.2f}",
    )
    return lesson.Number(answer=d / n, tolerance=lesson.near(d / n, 0.02, least=0.05), written="{:.2f}".format, **said)


@lab.asks("path")
def path(subject: Subject) -> lesson.Choice:
    wrong = {layer: index for index, layer in enumerate(ASKED) if layer != "attention"}
    choices = [*lab.texts("layer", ASKED).values()]
    return lesson.Choice(choices=choices, answer=ASKED.index("attention"), **lab.asked("path", wrong=wrong))
