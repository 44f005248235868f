"""The smallest example: two rows that look at each other."""

import numpy as np
import streamlit as st

from vizformer.explain import examples
from vizformer.web.tools.paper.matrices import editable, tables
from vizformer.web.widgets.laboratories import laboratory
from vizformer.web.words.i18n import _, show_markdown


@laboratory
def draw_two_rows() -> None:
    """X = [[1, 0, 1], [0, 1, 1]] with identity projections."""
    st.subheader(_("Two rows that look at each other"), anchor=False)
    left, right = st.columns([1, 2], gap="medium")
    with left:
        x = editable("x", _("X: two tokens, three numbers each (type over any of them)"), examples.TWO_ROWS)
    run = examples.paper_attention(x, x, x)
    with right:
        st.latex(
            r"\begin{gathered} W_Q = W_K = W_V = I \\"  # two lines: they fit a phone
            r" A = \mathrm{softmax}\!\left(\frac{X X^\top}{\sqrt{3}}\right), \quad Z = A X \end{gathered}"
        )
        tables((_("scores ÷ √3"), run.scores), (_("weights"), run.weights), (_("output"), run.output))
        if np.array_equal(x, examples.TWO_ROWS):  # true of these numbers, not of any
            show_markdown(
                "Each row is most like itself, so it keeps most of itself; what both have in common, the last "
                "column, stays as it is."
            )
