"""Attention without any weights, for the typed sentence."""

import streamlit as st

from vizformer import figures
from vizformer.explain import examples
from vizformer.explain.examples import PaperAttention
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.widgets import chart, row_names
from vizformer.web.widgets.laboratories import laboratory
from vizformer.web.widgets.model_input import subject_box
from vizformer.web.words import labels
from vizformer.web.words.errors import guarded
from vizformer.web.words.i18n import _, show_note


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
    queries, keys = row_names.queries(subject, stack), labels.texts(subject.trace.tokens[stack])
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
