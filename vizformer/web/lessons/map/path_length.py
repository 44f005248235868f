"""Why not an RNN, in the lesson The map: how many steps lie between the first token and the last output."""

import streamlit as st

from vizformer import figures
from vizformer.analysis.costs.layer_types import LayerType
from vizformer.figures import reach as reach_figures
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.map import computations, layer_types
from vizformer.web.widgets import chart, lesson
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words import labels
from vizformer.web.words.figure_words import words
from vizformer.web.words.i18n import _


@laboratory
def rnn(subject: Subject) -> None:
    """How many steps lie between the first token and the last, in five kinds of layers."""
    tokens = labels.texts(subject.tokens)
    n = len(tokens)
    lesson.ask(path_question(subject))
    titles = layer_types.names()
    kind: LayerType = st.segmented_control(
        _("Layer"),
        computations.KINDS,
        format_func=titles.__getitem__,
        required=True,
        **lesson.setting("map.kind", "recurrent", computations.KINDS),
    )
    k, r = layer_types.widths()
    shown = tokens[: computations.DRAWN]
    path = computations.path(kind, len(shown), k, r)
    chart.show(
        figures.path_picture(
            shown,
            path.levels,
            path.edges,
            path.way,
            states=kind == "recurrent",
            title=_("The way from the first token to the last output"),
            words=words(reach_figures.ENGLISH),
        ),
        key="map.path",
    )
    if n > len(shown):
        st.caption(
            _(
                "The picture shows the first {shown} of {n} tokens; the numbers are for all of them.",
                shown=len(shown),
                n=n,
            )
        )
    st.markdown(layer_types.path_table(n, k, r))
    layer_types.path_formula(kind, n, k, r, subject.config)


def path_question(subject: Subject) -> lesson.Choice | None:
    """How many layers of a convolution lie between the two ends of a text that is longer than the one on the page?"""
    if len(subject.tokens) < 2:  # nothing to be far from
        return None
    n, k = 10 * len(subject.tokens), 5
    layers, dilated = (computations.reach(kind, n, k, k).layers for kind in ("contiguous", "dilated"))
    choices = [dilated, -(-n // k), layers, n]
    return lesson.Choice(
        "map",
        "path",
        _(
            "A convolution looks at {k} neighbouring positions, back only. It reads a text ten times as long as yours: {n} "
            "tokens. How many layers have to be stacked before the last output can know the first token?",
            k=k,
            n=n,
        ),
        [f"{choice:,}" for choice in choices],
        choices.index(layers),
        _(
            "Every layer reaches {reach} positions further back, and the first token is {last} back: {layers} layers. The "
            "paper's n/k is an order of growth, not this number. A dilated convolution needs {dilated} layers, "
            "self-attention one.",
            reach=k - 1,
            last=n - 1,
            layers=layers,
            dilated=dilated,
        ),
        about=f"{subject.model} {subject.text}",
    )
