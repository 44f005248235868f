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
    lesson.ask(path_question(subject))  # first: the table below gives it away
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
    """Through how many cells, and through how many layers?"""
    n = len(subject.tokens)
    if n < 2:  # nothing to be far from
        return None
    choices = [
        _("recurrent {cells}, self-attention {layers}", cells=cells, layers=layers)
        for cells, layers in ((1, 1), (n, n), (n, 1), (n * n, n))
    ]
    return lesson.Choice(
        "map",
        "path",
        _(
            "Your sentence has {n} tokens. Through how many recurrent cells must what the model knows of the first token "
            "pass to reach the last output, and through how many layers of self-attention at the least?",
            n=n,
        ),
        choices,
        2,
        _(
            "The cell works once at each of the {n} positions, one after the other. In self-attention the last query "
            "multiplies with the first key directly, however far it is: one layer.",
            n=n,
        ),
        about=f"{subject.model} {subject.text}",
    )
