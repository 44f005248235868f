"""Examples by hand, every number to be typed over: two rows that look at each other; one query and four keys."""

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.components import matrix
from vizformer.explain import examples
from vizformer.explain.examples import PaperAttention
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.widgets import chart, map_words
from vizformer.web.widgets.laboratories import laboratory
from vizformer.web.widgets.model_input import subject_box
from vizformer.web.words import labels
from vizformer.web.words.errors import guarded
from vizformer.web.words.i18n import _, show_markdown, show_note


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


# Attention without any weights, for the typed sentence.
@cached
def first_layer(subject: Subject, stack: str, identity: bool, scaled: bool) -> PaperAttention:
    """What the first layer's input gives with identity matrices, or with head 0's learned ones."""
    return examples.first_layer_attention(subject.trace, stack, identity=identity, scaled=scaled)


@guarded()
def draw_no_weights() -> None:
    """softmax(X X^T) X for the typed sentence: what attention does before anything is learned."""
    st.subheader(_("Attention without any weights, for your sentence"), anchor=False)
    subject = subject_box()
    if subject is not None:
        _sentence(subject)


@laboratory
def _sentence(subject: Subject) -> None:
    identity = st.toggle(_("Identity instead of W_Q, W_K, W_V"), value=True, key="paper.identity")
    scaled = st.toggle(_("Divide by √d"), value=True, key="paper.scaled")
    stack = next(iter(subject.trace.tokens))
    queries, keys = map_words.queries(subject, stack), labels.texts(subject.trace.tokens[stack])
    run = first_layer(subject, stack, identity, scaled)
    title = (
        _("softmax(X Xᵀ) of the first layer's input")
        if identity
        else _("Layer 0, head 0: the learned matrices, same input")
    )
    kind = st.segmented_control(
        _("Show"),
        ["weights", "scores"],
        format_func=lambda k: {"weights": _("weights"), "scores": _("scores")}[k],
        default="weights",
        required=True,
        key="paper.kind",
    )
    picture = figures.attention_heatmap(
        run.weights if kind == "weights" else run.scores,
        queries,
        keys,
        kind="scores" if kind == "scores" else "weights",
        title=title,
    )
    chart.show(picture, key="paper.map")
    show_note(
        "With the identity the scores are symmetric: i scores j exactly as j scores i, and a token "
        "usually attends most to itself. With three matrices a token can attend to others."
    )
