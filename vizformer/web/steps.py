"""One step of the arithmetic on a page: words, formula, numbers, code, proof."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from vizformer.components import matrix
from vizformer.web.errors import plain
from vizformer.web.i18n import _, translate

if TYPE_CHECKING:
    from vizformer.explain import Axis, Operand, Step


def show_step(step: "Step", index: int, key_tokens: Sequence[str], *, details: bool) -> None:
    """Draws a step; `details` adds the tables behind it (every number, and sums term by term)."""
    st.subheader(f"{index} · {translate(step.title, plain)}", anchor=False)
    words, code = st.columns([3, 2], gap="medium")
    with words:
        st.markdown(translate(step.text, plain))
        st.latex(step.formula)
    with code:
        st.caption(_("The same in PyTorch"))
        st.code(step.code, language="python", wrap_lines=True)
    st.latex(step.live)
    for operand in step.operands:
        _table(operand.value, operand.axes, translate(operand.meaning), key_tokens, step)
    _table(step.result, step.axes, _("Result"), key_tokens, step)
    proof_line(step)
    if details:
        _details(step, key_tokens)


def proof_line(step: "Step") -> None:
    """Whether the model computed the same, and how we know."""
    proof = step.proof
    values = {"anchor": translate(proof.anchor), "difference": f"{proof.difference:.1g}"}
    if not proof.holds:
        st.error(plain_words(_("Differs from the model: {anchor} is off by up to {difference}.", **values)))
    elif proof.direct:
        st.success(plain_words(_("Agrees with the model to {difference}: compared with {anchor}.", **values)))
    else:
        text = _("Agrees with the model to {difference}: this number goes into {anchor}.", **values)
        st.success(plain_words(text))


def plain_words(text: str) -> str:
    """Names of places hold dots and underscores, which Markdown must not read."""
    return text.replace("_", r"\_").replace("*", r"\*")


def labels(axis: "Axis", key_tokens: Sequence[str]) -> list[str] | None:
    return list(key_tokens) if axis == "keys" else None


def _table(value: np.ndarray, axes: "tuple[Axis, ...]", caption: str, key_tokens: Sequence[str], step: "Step") -> None:
    over_keys = axes[-1] == "keys"
    html = matrix.to_html(
        value,
        rows=labels(axes[0], key_tokens) if len(axes) == 2 else None,
        columns=labels(axes[-1], key_tokens),
        caption=caption,
        blocked=step.blocked if over_keys else None,
        blocked_hint=_("blocked by the mask"),
    )
    st.html(html)


def _details(step: "Step", key_tokens: Sequence[str]) -> None:
    with st.expander(_("Every number")):
        tensors: list[Operand | None] = [None, *step.operands]
        choice = st.selectbox(
            _("Table"),
            range(len(tensors)),
            format_func=lambda i: _("Result") if tensors[i] is None else translate(tensors[i].meaning),  # type: ignore[union-attr]
            key=f"steps.table.{step.key}",
        )
        chosen = tensors[choice]
        value, axes = (step.result, step.axes) if chosen is None else (chosen.value, chosen.axes)
        st.dataframe(_frame(value, axes, key_tokens), height=min(420, 38 + 35 * (1 if value.ndim == 1 else len(value))))
    if step.contraction is not None:
        with st.expander(_("The sum, term by term")):
            _terms(step, key_tokens)


def _terms(step: "Step", key_tokens: Sequence[str]) -> None:
    """left[r, m] * right[m, c] for every m, and their sum."""
    contraction = step.contraction
    assert contraction is not None
    n_rows, n_columns = len(contraction.left), contraction.right.shape[1]
    which_row, which_column = st.columns(2)
    row = 0
    if n_rows > 1:
        row = which_row.selectbox(
            _("Row"), range(n_rows), format_func=lambda i: f"{i} · {key_tokens[i]}" if n_rows == len(key_tokens) else str(i),
            key=f"steps.row.{step.key}",
        )  # fmt: skip
    over_keys = step.axes[-1] == "keys"
    column = which_column.selectbox(
        _("Key") if over_keys else _("Component"),
        range(n_columns),
        format_func=lambda i: f"{i} · {key_tokens[i]}" if over_keys else str(i),
        key=f"steps.column.{step.key}",
    )
    left, right = contraction.left[row], contraction.right[:, column]
    products = contraction.products(row, column)
    table = {_("left factor"): left, _("right factor"): right, _("product"): products}
    st.dataframe(table, height=min(420, 38 + 35 * len(left)))
    total = contraction.total()[row, column]
    if contraction.add is None:
        st.text(_("Sum of {n} products: {total}", n=len(left), total=f"{total:.6f}"))
    else:
        st.text(
            _("Sum of {n} products: {sum}; plus the bias {bias}: {total}", n=len(left), sum=f"{products.sum():.6f}",
              bias=f"{contraction.add[column]:.6f}", total=f"{total:.6f}")
        )  # fmt: skip


def _frame(value: np.ndarray, axes: "tuple[Axis, ...]", key_tokens: Sequence[str]) -> object:
    import pandas as pd

    def names(axis: "Axis", count: int) -> list[str]:
        found = labels(axis, key_tokens)
        return [str(i) for i in range(count)] if found is None else [f"{i} · {text}" for i, text in enumerate(found)]

    table = value[None] if value.ndim == 1 else value
    index = [""] if value.ndim == 1 else names(axes[0], len(table))
    return pd.DataFrame(table.astype(np.float32), index=index, columns=names(axes[-1], table.shape[1]))
