"""Steps of arithmetic on a page: words, formula, numbers, code, proof; one at a time or all at once."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import streamlit as st

from vizformer.components import matrix
from vizformer.explain import Axis, Contraction, Operand, Step, snippet
from vizformer.messages import N_
from vizformer.web.link import state
from vizformer.web.widgets import data_table, proof_badge
from vizformer.web.widgets.laboratories import folded
from vizformer.web.words.errors import plain
from vizformer.web.words.i18n import Markup, _, show_note, show_text, show_warning, translate

Labels = Mapping[str, Sequence[str]]
"""Names of what is counted along an axis (`vizformer.explain.Axis`): token texts for "keys", "queries", ..."""

_STAND_INS = N_("torch.randn replaces tables that are too long to write out: their numbers are below").text
WIDE = 12  # columns of an overview's table before it is elided: Q, K and V of the toy side by side
LONG_CODE, TALLEST = 700, 380  # characters; px
MAPS_SHOWN = 4  # heads of a three-dimensional result; the rest are in "Every number"


def walk(steps: Sequence[Step], labels: Callable[[Step], Labels], before: Sequence[Step] | None = None) -> None:
    """Previous and next (buttons and arrow keys), a list of the steps, and the chosen one, or all of them.

    `before` are the same steps without the numbers set by hand, where there are any.
    """
    unedited = {step.key: step for step in before or ()}
    last = len(steps) - 1
    current = min(state.view().step, last)
    titles = [f"{index} · {translate(step.title)}" for index, step in enumerate(steps)]
    if state.view().step > last:
        state.update(step=last)
    with st.container(horizontal=True, vertical_alignment="center", key="bar-place-steps"):
        st.selectbox(
            _("Step"),
            range(len(steps)),
            format_func=titles.__getitem__,
            label_visibility="collapsed",
            **state.bind("step"),
        )
        st.button(
            _("Previous"), disabled=current == 0, shortcut="Left", key="steps.back", on_click=_go, args=(current - 1,)
        )
        st.button(
            _("Next"),
            disabled=current == last,
            shortcut="Right",
            key="steps.forward",
            type="primary",
            on_click=_go,
            args=(current + 1,),
        )
        everything = st.toggle(_("All at once"), key="steps.all", persist_state="session")
    st.html(matrix.style())
    for index, step in enumerate(steps):
        if everything or index == current:
            code = snippet(steps, index).text(_(_STAND_INS)) if step.written is None else step.written.line
            if everything:  # (else the list says which step it is)
                st.subheader(f"{index} · {translate(step.title, plain)}", anchor=False)
            show_step(step, labels(step), code, details=not everything, before=unedited.get(step.key))


def overview(steps: Sequence[Step], labels: Callable[[Step], Labels]) -> None:
    """The results of all steps as small tables, for models small enough to see at once."""
    parts: list[str] = []

    def add(title: str, value: np.ndarray, axes: tuple[Axis, ...], names: Labels) -> None:
        if value.ndim < 3:
            parts.append(table(value, axes, title, names, shown=WIDE))
        else:
            parts.extend(table(one, axes[1:], _part(title, axes[0], at), names) for at, one in enumerate(value))

    for index, step in enumerate(steps):
        names = labels(step)
        title = step.title if step.meaning is None else step.meaning
        add(f"{index} · {translate(title)}", step.result, step.axes, names)
        for made in step.also:  # the heads' keys and values stand nowhere else
            add(f"{index} · {translate(made.tensor.meaning)}", made.tensor.value, made.tensor.axes, names)
    st.html(matrix.style())
    st.html(_row(parts, "vf-compact"))


def _go(step: int) -> None:
    state.update(step=step)


def show_step(step: Step, labels: Labels, code: str, *, details: bool, before: Step | None = None) -> None:
    """Draws a step; `details` adds the tables behind it (every number, and sums term by term)."""
    numbers, words = st.columns([3, 2], gap="medium")
    with numbers:
        for operand in step.operands:
            _tables(operand.value, operand.axes, translate(operand.meaning), labels, step.blocked)
        _tables(step.result, step.axes, _result_name(step), labels, step.blocked)
        for made in step.also:
            _tables(made.tensor.value, made.tensor.axes, translate(made.tensor.meaning), labels, step.blocked)
        st.latex(step.live)
        if before is not None:
            _changes(step, before, labels)
        proof_line(step)
    with words:
        st.markdown(translate(step.text, plain))
        st.latex(step.formula)
        if step.written is None:
            show_note("The same in PyTorch")
        else:
            show_note("In the model's own code: {where}", where=Markup(translate(step.written.where, plain)))
        tall = len(code) > LONG_CODE  # numbers written out: what stands beside it must not end far above
        if code:
            st.code(code, language="python", wrap_lines=True, height=TALLEST if tall else "content")
    if details:
        _details(step, labels)


def _result_name(step: Step) -> str:
    return _("Result") if step.meaning is None else translate(step.meaning)


def proof_line(step: Step) -> None:
    """Whether the model computed the same, and how we know."""
    if step.edited:
        show_warning("Edited: numbers of this step were set by hand.")
    if step.written is not None and step.written.unproved is not None:
        st.warning(translate(step.written.unproved, plain))
        return
    proof_badge.show(step.proof)


def _changes(step: Step, before: Step, labels: Labels) -> None:
    """What a step gave before the edit, and the difference."""
    if step.result.shape != before.result.shape or step.result.ndim > 2:
        return
    difference = step.change_since(before)
    if not difference.any():
        show_note("This step is as it was before the edit.")
        return
    st.html(table(before.result, step.axes, _("Before the edit"), labels))
    st.html(table(difference, step.axes, _("What changed"), labels))


def table(
    value: np.ndarray,
    axes: tuple[Axis, ...],
    caption: str,
    labels: Labels,
    blocked: Any = None,
    shown: int = matrix.SHOWN,
) -> str:
    """A vector or matrix as HTML, its axes labelled."""
    return matrix.to_html(
        value,
        rows=labels.get(axes[0]) if len(axes) == 2 else None,
        columns=labels.get(axes[-1]),
        caption=caption,
        blocked=blocked if axes[-1] == "keys" else None,
        blocked_hint=_("blocked by the mask"),
        shown=shown,
    )


def _tables(value: np.ndarray, axes: tuple[Axis, ...], caption: str, labels: Labels, blocked: Any) -> None:
    """One table, or one for each head side by side."""
    if value.ndim < 3:
        st.html(table(value, axes, caption, labels, blocked))
        return
    shown = range(min(len(value), MAPS_SHOWN))
    st.html(_row([table(value[at], axes[1:], _part(caption, axes[0], at), labels) for at in shown]))


def _part(caption: str, axis: Axis, at: int) -> str:
    """One of the matrices of a three-dimensional result."""
    name = _("head {head}", head=at)  # the extractor does not look into f-strings
    return f"{caption} · {name}"


def _row(tables: Sequence[str], kind: str = "") -> str:
    return f'<div class="vf-row {kind}">{"".join(f"<div>{html}</div>" for html in tables)}</div>'


def _details(step: Step, labels: Labels) -> None:
    with folded(_("Every number"), key=f"steps.numbers.{step.key}") as is_open:
        if is_open:
            _every_number(step, labels)
    if step.contraction is not None:
        with folded(_("The sum, term by term"), key=f"steps.terms.{step.key}") as is_open:
            if is_open:
                _terms(step, step.contraction, labels)


def _every_number(step: Step, labels: Labels) -> None:
    """One of the step's tensors as a table that can be scrolled and searched."""
    tensors: list[Operand | None] = [None, *(made.tensor for made in step.also), *step.operands]
    names = [_result_name(step) if tensor is None else translate(tensor.meaning) for tensor in tensors]
    choice, head = st.columns(2)
    number = choice.selectbox(
        _("Table"), range(len(tensors)), format_func=names.__getitem__, key=f"steps.table.{step.key}"
    )
    chosen = tensors[number]
    value, axes = (step.result, step.axes) if chosen is None else (chosen.value, chosen.axes)
    if value.ndim == 3:
        which = head.selectbox(_("Head"), range(len(value)), key=f"steps.head.{step.key}")
        value, axes = value[which], axes[1:]
    data_table.show(_frame(value, axes, labels), height=_height(1 if value.ndim == 1 else len(value)))


def _terms(step: Step, contraction: Contraction, labels: Labels) -> None:
    """left[r, m] * right[m, c] for every m, and their sum."""
    row_axis = step.axes[0] if len(step.axes) == 2 else "features"
    row_names = _names(row_axis, len(contraction.left), labels)
    column_names = _names(step.axes[-1], contraction.right.shape[1], labels)
    which_row, which_column = st.columns(2)
    row = 0
    if len(row_names) > 1:
        row = which_row.selectbox(
            _("Row"), range(len(row_names)), format_func=row_names.__getitem__, key=f"steps.row.{step.key}"
        )
    column = which_column.selectbox(
        _("Key") if step.axes[-1] == "keys" else _("Component"),
        range(len(column_names)),
        format_func=column_names.__getitem__,
        key=f"steps.column.{step.key}",
    )
    left, right = contraction.left[row], contraction.right[:, column]
    products = contraction.products(row, column)
    data_table.show(
        {_("left factor"): left, _("right factor"): right, _("product"): products}, height=_height(len(left))
    )
    total = f"{contraction.total()[row, column]:.6f}"
    if contraction.add is None:
        show_text("Sum of {n} products: {total}", n=len(left), total=total)
    else:
        show_text(
            "Sum of {n} products: {sum}; plus the bias {bias}: {total}",
            n=len(left),
            sum=f"{products.sum():.6f}",
            bias=f"{contraction.add[column]:.6f}",
            total=total,
        )


def _names(axis: str, count: int, labels: Labels) -> list[str]:
    found = labels.get(axis)
    return [str(i) for i in range(count)] if found is None else [f"{i} · {text}" for i, text in enumerate(found)]


def _frame(value: np.ndarray, axes: tuple[Axis, ...], labels: Labels) -> object:
    import pandas as pd

    rows = value[None] if value.ndim == 1 else value
    index = [""] if value.ndim == 1 else _names(axes[0], len(rows), labels)
    return pd.DataFrame(rows.astype(np.float32), index=index, columns=_names(axes[-1], rows.shape[1], labels))


def _height(rows: int) -> int:
    return min(420, 38 + 35 * rows)
