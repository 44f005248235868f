"""Examples by hand, every number to be typed over: two rows that look at each other; one query and four keys."""

import numpy as np
import streamlit as st

from vizformer.components import matrix
from vizformer.explain import examples
from vizformer.web.widgets.laboratories import laboratory
from vizformer.web.words.i18n import _, show_markdown


def editable(name: str, caption: str, start: np.ndarray) -> np.ndarray:
    import pandas as pd

    st.caption(caption)
    names = [_("value v")] if start.shape[1] == 1 else [str(column) for column in range(start.shape[1])]
    edited = st.data_editor(pd.DataFrame(start, columns=names), key=f"paper.{name}", hide_index=True, num_rows="fixed")
    return np.nan_to_num(np.asarray(edited, dtype=np.float64))


def tables(*parts: tuple[str, np.ndarray]) -> None:
    html = "".join(f"<div>{matrix.to_html(value, caption=caption)}</div>" for caption, value in parts)
    st.html(f'<div class="vf-row">{html}</div>')


@laboratory
def draw_two_rows() -> None:
    """X = [[1, 0, 1], [0, 1, 1]] with identity projections."""
    st.subheader(_("Attention between two rows"), anchor=False)
    left, right = st.columns([1, 2], gap="medium")
    with left:
        x = editable("x", _("X: two tokens, three numbers each (you can change every number)"), examples.TWO_ROWS)
    run = examples.paper_attention(x, x, x)
    with right:
        st.latex(
            r"\begin{gathered} W_Q = W_K = W_V = I \\"  # two lines: they fit a phone
            r" A = \mathrm{softmax}\!\left(\frac{X X^\top}{\sqrt{3}}\right), \quad Z = A X \end{gathered}"
        )
        tables((_("scores ÷ √3"), run.scores), (_("weights"), run.weights), (_("output"), run.output))
        if np.array_equal(x, examples.TWO_ROWS):  # true of these numbers, not of any
            show_markdown(
                "Each row is most similar to itself, so it keeps most of itself; the common last column does not "
                "change."
            )


@laboratory
def draw_four_keys() -> None:
    """One query, four keys: what a widely copied text prints, and what is right."""
    st.subheader(_("One query, four keys: three answers, two of them right"), anchor=False)
    cells = st.columns(3)
    with cells[0]:
        q = editable("q", "q", examples.QUERY)
    with cells[1]:
        k = editable("k", "K", examples.KEYS)
    with cells[2]:
        v = editable("v", "V", examples.VALUES)
    printed, plain, scaled = st.columns(3, gap="medium", border=True)
    with printed:
        show_markdown("**As widely printed**")
        tables((_("weights"), examples.PRINTED_WEIGHTS), (_("output"), np.array([examples.PRINTED_OUTPUT])))
        show_markdown(
            "These weights are not a softmax: they sum to {total:.1f}, not to 1. The output with these weights is "
            "{honest:.1f}, which differs from the printed one.",
            total=examples.PRINTED_SUM,
            honest=examples.PRINTED_WEIGHTS_GIVE,
        )
    for column, title, run in (
        (plain, _("**Right, without the division**"), examples.paper_attention(q, k, v, scaled=False)),
        (scaled, _("**Right, with the formula's own ÷ √2**"), examples.paper_attention(q, k, v)),
    ):
        with column:
            st.markdown(title)
            tables((_("weights"), run.weights[0]), (_("output"), run.output[0]))
            st.latex(rf"\frac{{q \cdot k_j}}{{{run.divisor:.4g}}}")
    if np.array_equal(q, examples.QUERY) and np.array_equal(k, examples.KEYS):
        show_markdown(
            "Keys 0 and 2 agree with the query equally well (q·k = 1), keys 1 and 3 not at all (q·k = 0). But a "
            "score of 0 is not a weight of 0: e⁰ = 1, so the softmax still gives them a share."
        )
