"""One query and four keys: what a widely copied text prints, and what is right."""

import numpy as np
import streamlit as st

from vizformer.explain import examples
from vizformer.web.tools.paper.matrices import editable, tables
from vizformer.web.widgets.laboratories import laboratory
from vizformer.web.words.i18n import _, show_markdown


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
            "These are no softmax: weights must sum to 1, and these sum to {total:.1f}. Nor do they give the printed "
            "output: with them it would be {honest:.1f}.",
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
