"""A laboratory of the lesson Add & norm, feed-forward: one token's row through a layer, its length and its direction."""

import streamlit as st

from vizformer import figures
from vizformer.components import matrix, table
from vizformer.components.table import Number, Row
from vizformer.explain import block_rows, latex
from vizformer.explain.block_rows import BlockStream, StackStream
from vizformer.web.catalogue.subject import Subject
from vizformer.web.catalogue.subject_functions import of_trace
from vizformer.web.lessons.block.place import Place, block_stream, choose, line, usual
from vizformer.web.widgets import chart, lesson, proof_badge
from vizformer.web.widgets.lab import Laboratory, aside

lab = Laboratory("block", "stream")
POINTS = ("pre", "mid", "mid_self", "mid_cross", "post", "final")
FIRST = {
    "post": r", \quad f = g(x), \quad x' = \mathrm{norm}(y)",
    "pre": r", \quad f = g(\mathrm{norm}(x))",
    "none": r", \quad f = g(x)",
}
"""What the first sum adds, by the order of the norms."""


stack_stream = of_trace(block_rows.stack_stream)


@lab.draws
def draw_residual_stream(subject: Subject) -> None:
    st.html(table.style())
    settings = line()
    place, below = choose(lab, subject, settings)
    with settings:
        shown = lab.buttons("range", ("layer", "stack"), label_visibility="collapsed")
    lesson.ask(residual_stream_question(subject, place), folded=True)  # first: the picture below gives it away
    found = block_stream(subject, *place)
    names = _names(subject, found)
    if shown == "stack":
        whole = stack_stream(subject, place.stack, place.row)
        drawn = (_stack_names(whole), whole.lengths, whole.to_start, whole.to_end)
        kinds = [7 if name == "final" or name.endswith(".pre") else 0 for name in whole.names]
    else:
        drawn = (names, found.lengths, found.to_start, found.to_end)
        kinds = [7 if point.name == "start" else 1 if point.name.endswith(".sum") else 0 for point in found.points]
    title = lab.text("row", row=place.row, token=subject.trace.tokens[place.stack][place.row].text)
    chart.show(figures.stream_points(*drawn, kinds=kinds, title=title), key="block.stream")
    aside(below)
    rows = [
        Row(
            name,
            "" if point.added is None else Number(point.added_length, matrix.number(point.added_length)),
            *map(float, numbers),
        )
        for name, point, *numbers in zip(names, found.points, found.lengths, found.to_start, found.to_end, strict=True)
    ]
    columns = lab.columns("point", "added", "length", "start", "end")
    st.html(table.to_html(columns, rows, caption=lab.text("of_layer")))
    proof_badge.show(found.worst, edited=bool(subject.edited))
    _formula(subject, place, found)


@lab.asks("growth")
def residual_stream_question(subject: Subject, place: Place | None = None) -> lesson.Choice | None:
    place = place or usual(subject)
    whole, order = stack_stream(subject, place.stack, place.row), subject.config.norm_order
    first, last = float(whole.lengths[0]), float(whole.lengths[whole.last_layer])
    values = {"row": place.row, "token": subject.trace.tokens[place.stack][place.row].text}
    lengths = {"first": f"{first:.1f}", "last": f"{last:.1f}"}
    right = "shrinks" if last < first / 2 else "grows" if last > 2 * first else "stays"
    return lab.choice("growth", ("shrinks", "stays", "grows"), right, subject, place, form=order, **values, **lengths)


def _names(subject: Subject, found: BlockStream) -> list[str]:
    """The names of the points of a layer, numbered where they repeat, as the names of norms do."""
    sign, names = "→" if subject.config.residual == "none" else "+", []
    for point in found.points:
        kind, __, what = point.name.partition(".")
        if what == "sum":
            names.append(f"{sign} {lab.text(f'sublayer.{kind}')}")
        else:
            names.append(lab.text("norm" if what == "norm" else "points.pre"))
    return [f"{name} {names[: i + 1].count(name)}" if names.count(name) > 1 else name for i, name in enumerate(names)]


def _stack_names(whole: StackStream) -> list[str]:
    """The names of the points of a stack: "0.mid" is after layer 0's attention."""
    said, names = dict(lab.texts("points", POINTS)), []
    for name in whole.names:
        layer, __, what = name.rpartition(".")
        names.append(said[what] if name in ("0.pre", "final") else f"{layer} {said[what]}")
    return names


def _formula(subject: Subject, place: Place, found: BlockStream) -> None:
    """The length of the first sum from its two parts; as code with the norm that follows, where one does."""
    order, parts = subject.config.norm_order, found.first_sum
    adds, post = subject.config.residual != "none", order == "post"
    line, given = (
        block_rows.norm_code(subject.checkpoint, place.stack, place.layer, "self", "after", "y") if post else ("", {})
    )
    summed, square = ("y &= x + f", r"|x|^2 + 2\, x \cdot f + |f|^2") if adds else ("y &= f", "|f|^2")
    root = f"{parts.first:.2f} + 2 \\cdot {latex.factor(parts.product)} + {parts.second:.2f}"
    length = parts.length if adds else parts.second**0.5
    lesson.formula(
        rf"\begin{{aligned}} {summed}{FIRST[order]} \\ |y|^2 &= {square} \end{{aligned}}",
        live=rf"|y| = \sqrt{{{root if adds else f'{parts.second:.2f}'}}} = {length:.4f}",
        code=("y = x + f  # f: what the attention adds\n" if adds else "y = f  # what the attention has found\n")
        + (f"{line}\n" if post else "after = y  # no norm follows: nothing else happens to it\n")
        + "length, cosine = after.norm(), F.cosine_similarity(after, x, dim=0)",
        given={"x": found.points[0].row, "f": found.attention_added, **given},
    )
