"""What was found: the table of steps, the first that departs, what may have gone wrong there, and its differences."""

from typing import Literal

import streamlit as st

from vizformer import figures
from vizformer.analysis.own_steps.first_departure import Compared, Picture
from vizformer.components import table
from vizformer.components.table import Number, Row
from vizformer.web.catalogue.subject import Subject
from vizformer.web.tools.compare.computations import Checked
from vizformer.web.widgets import chart
from vizformer.web.words import labels
from vizformer.web.words.errors import plain
from vizformer.web.words.i18n import _, show_info, show_markdown, show_note, show_text, show_warning, translate
from vizformer.web.words.plain_text import Markup

UNKNOWN = 8  # names that are listed


def show(checked: Checked, current: Subject) -> None:
    """All of it, for the sentence with which it was compared."""
    if checked.subject != current:
        show_info(
            "This result is for “{text}” in {model}, not for the current choice.",
            text=checked.subject.text,
            model=checked.subject.title,
        )
    comparison = checked.comparison
    if comparison.unknown:
        names = ", ".join(comparison.unknown[:UNKNOWN])
        dots = " …" if len(comparison.unknown) > UNKNOWN else ""
        show_warning("There are no steps of these names: {names}", names=names + dots)
    if not comparison.steps:
        return
    first = comparison.first
    _table(checked, first)
    if first is None:
        st.success(
            _(
                "All submitted steps agree with the model within {tolerance} (steps compared: {n}).",
                tolerance=f"{checked.tolerance:g}",
                n=len(comparison.steps),
            )
        )
    else:
        _first(first, checked)


def _first(first: Compared, checked: Checked) -> None:
    show_warning(
        "The first step that differs: **{name}** · {title}",
        name=first.name,
        title=Markup(translate(first.title, plain)),
    )
    if first.problem == "shape":
        show_text(
            "Its shape should be {shape}; yours is {given}.",
            shape=" × ".join(map(str, first.shape)),
            given=" × ".join(map(str, first.given)) or "1",
        )
    elif first.problem == "nan":
        show_text("Some of its numbers are NaN or infinite, but not in the model.")
    if checked.hints:
        show_markdown("**Mistakes that give exactly these numbers**")
        for hint in checked.hints:
            st.markdown("- " + translate(hint, plain))
        if len(checked.hints) > 1:
            show_text("Each of these mistakes gives exactly these numbers; yours is one of them.")
        show_note(
            "VizFormer tried each known mistake at this step and at those after the last step that agrees; "
            "these give your numbers."
        )
    else:
        show_text(
            "No known mistake gives these numbers. Submit the steps before this one too, back to one that agrees."
        )
    if checked.picture is not None:
        _picture(first, checked.picture, checked.subject)


def _picture(first: Compared, picture: Picture, subject: Subject) -> None:
    n_rows, n_columns = picture.values.shape
    stack = first.name.split(".")[0]
    tokens = labels.texts(subject.trace.tokens.get(stack, ()))
    rows = [f"{row} {tokens[row]}" if n_rows == len(tokens) else str(row) for row in range(n_rows)]
    columns = [str(picture.first_column + column) for column in range(n_columns)]
    title = _("yours − model")
    if picture.head is not None:
        title += " · " + _("head {head}", head=picture.head)
    chart.show(
        figures.matrix_heatmap(
            picture.values, rows, columns, row_title=_("row"), column_title=_("column"), title=title
        ),
        key="compare.picture",
    )
    show_note("The largest difference is in row {row}, column {column}.", row=picture.worst[0], column=picture.worst[1])


def _table(checked: Checked, first: Compared | None) -> None:
    past = False
    rows = []
    for step in checked.comparison.steps:
        said = _("differs") if step.departs else _("agrees")
        shown = "" if step.problem else f"{step.difference:.1e}"
        kind: Literal["", "marked", "faint"] = "marked" if step is first else "faint" if past else ""
        past = past or step is first
        difference = Number(step.difference, shown) if shown else "–"
        rows.append(
            Row(
                step.name,
                translate(step.title),
                "\u00a0×\u00a0".join(map(str, step.given)),
                difference,
                said,
                kind=kind,
            )
        )
    st.html(table.style())
    columns = (_("step"), _("description"), _("shape"), _("max |difference|"), "")
    st.html(table.to_html(columns, rows, caption=_("In the order in which a forward computes them")))
