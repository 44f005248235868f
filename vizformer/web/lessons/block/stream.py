"""The laboratory The sum: one token's row through a layer, its length and its direction."""

import streamlit as st

from vizformer import figures
from vizformer.components import matrix, table
from vizformer.components.table import Number, Row
from vizformer.explain import latex
from vizformer.explain.block_rows import BlockStream
from vizformer.figures import stream as stream_figure
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.block import computations, wording
from vizformer.web.lessons.block.place import Place, choose
from vizformer.web.widgets import chart, lesson, proof_badge
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words.figure_words import words
from vizformer.web.words.i18n import _


@laboratory
def stream(subject: Subject) -> None:
    """One token's row at every point of a layer, or of all layers."""
    st.html(table.style())
    place = choose(subject)
    lesson.ask(growth_question(subject, place), folded=True)  # first: the picture below gives it away
    name = subject.trace.tokens[place.stack][place.row].text
    ranges = {"layer": _("this layer"), "stack": _("all layers")}
    shown = st.segmented_control(
        _("Show"),
        list(ranges),
        format_func=ranges.__getitem__,
        required=True,
        label_visibility="collapsed",
        **lesson.setting("block.range", "layer", tuple(ranges)),
    )
    found = computations.block_stream(subject, *place)
    title = _("Row {row}, “{token}”", row=place.row, token=name)
    if shown == "stack":
        whole = computations.stack_stream(subject, place.stack, place.row)
        names = [wording.stack_point(point) for point in whole.names]
        drawn = (names, whole.lengths, whole.to_start, whole.to_end)
        kinds = [wording.colour(point) for point in whole.names]
    else:
        names = _names(subject, found)
        drawn = (names, found.lengths, found.to_start, found.to_end)
        kinds = [wording.colour(point.name) for point in found.points]
    chart.show(
        figures.stream_points(*drawn, kinds=kinds, title=title, words=words(stream_figure.ENGLISH)),
        key="block.stream",
    )
    _table(subject, found)
    proof_badge.show(found.worst, edited=bool(subject.edited))
    _formula(subject, place, found)


def _names(subject: Subject, found: BlockStream) -> list[str]:
    adds = subject.config.residual != "none"
    return wording.numbered([wording.point_name(point.name, adds=adds) for point in found.points])


def _table(subject: Subject, found: BlockStream) -> None:
    columns = (_("point"), _("length of what is added"), _("length |x|"), _("cosine to the start"), _("to the end"))
    names = _names(subject, found)
    rows = [
        Row(
            (
                name,
                "" if point.added is None else Number(point.added_length, matrix.number(point.added_length)),
                float(length),
                float(start),
                float(end),
            )
        )
        for name, point, length, start, end in zip(
            names, found.points, found.lengths, found.to_start, found.to_end, strict=True
        )
    ]
    st.html(table.to_html(columns, rows, caption=_("Start and end are those of this layer")))


def _formula(subject: Subject, place: Place, found: BlockStream) -> None:
    """The length of the first sum from its two parts; as code with the norm that follows, where one does."""
    order, parts = subject.config.norm_order, found.first_sum
    adds, post = subject.config.residual != "none", order == "post"
    first = {
        "post": r", \quad f = g(x), \quad x' = \mathrm{norm}(y)",
        "pre": r", \quad f = g(\mathrm{norm}(x))",
        "output": r", \quad f = \mathrm{norm}(g(x))",
        "sandwich": r", \quad f = \mathrm{norm}'(g(\mathrm{norm}(x)))",
        "none": r", \quad f = g(x)",
    }[order]
    line, given = computations.norm_code(subject, place.stack, place.layer, "self", "after", "y") if post else ("", {})
    summed, square = ("y &= x + f", r"|x|^2 + 2\, x \cdot f + |f|^2") if adds else ("y &= f", "|f|^2")
    root = f"{parts.first:.2f} + 2 \\cdot {latex.factor(parts.product)} + {parts.second:.2f}"
    length = parts.length if adds else parts.second**0.5
    lesson.formula(
        rf"\begin{{aligned}} {summed}{first} \\ |y|^2 &= {square} \end{{aligned}}",
        live=rf"|y| = \sqrt{{{root if adds else f'{parts.second:.2f}'}}} = {length:.4f}",
        code=("y = x + f  # f: what the attention adds\n" if adds else "y = f  # what the attention has found\n")
        + (f"{line}\n" if post else "after = y  # no norm follows: nothing else happens to it\n")
        + "length, cosine = after.norm(), F.cosine_similarity(after, x, dim=0)",
        given={"x": found.points[0].row, "f": found.attention_added, **given},
    )


def growth_question(subject: Subject, place: Place) -> lesson.Choice:
    """The question: does the stream grow from layer to layer?"""
    whole = computations.stack_stream(subject, place.stack, place.row)
    first, last = float(whole.lengths[0]), float(whole.lengths[whole.last_layer])
    choices = [_("it shrinks to half or less"), _("it stays within a factor of 2"), _("it grows to more than twice")]
    answer = 0 if last < first / 2 else 2 if last > 2 * first else 1
    why = (
        _(
            "From {first} to {last}. This model is post-norm: after every sum a norm sets the row back to a length that "
            "it has learned, about √d_model times its gamma.",
            first=f"{first:.1f}",
            last=f"{last:.1f}",
        )
        if subject.config.norm_order == "post"
        else _(
            "From {first} to {last}. This model normalises what a sublayer has found before it is added: every sublayer "
            "adds a row of about the length that was learned, and nothing ever takes it back. Only the last norm, after all "
            "layers, does.",
            first=f"{first:.1f}",
            last=f"{last:.1f}",
        )
        if subject.config.norm_order in ("output", "sandwich")
        else _(
            "From {first} to {last}. This model has no norms in its layers: nothing brings the row back to a standard size.",
            first=f"{first:.1f}",
            last=f"{last:.1f}",
        )
        if subject.config.norm_order == "none"
        else _(
            "From {first} to {last}. This model is pre-norm: every sublayer adds to the row and nothing ever takes it "
            "back. Only the last norm, after all layers, does.",
            first=f"{first:.1f}",
            last=f"{last:.1f}",
        )
    )
    return lesson.Choice(
        "block",
        "growth",
        _(
            "Row {row}, “{token}”: what happens to the length of its vector from the input of the first layer to the end "
            "of the last one?",
            row=place.row,
            token=subject.trace.tokens[place.stack][place.row].text,
        ),
        choices,
        answer,
        why,
        about=f"{subject} {place}",
    )
