"""What the chosen head does by its weights alone: copying, pairs of tokens, and the heads that it reads or that read it."""

from typing import Any

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.analysis import Kind
from vizformer.analysis.circuits.composition import FALSE
from vizformer.errors import TraceError
from vizformer.web.catalogue import model_cache
from vizformer.web.link import state
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.pages.head_report import computations
from vizformer.web.widgets import chart, data_table, lesson
from vizformer.web.words.i18n import _, show_note, show_text, translate

PAIRS = 12
FURTHEST = 31  # tokens between query and key that can be chosen


def draw_circuits(model: ModelRef, kind: Kind, place: tuple[int, int]) -> None:
    """Draws the circuits of the chosen head, where its stack is the one that predicts."""
    if kind != computations.predicting(model):
        show_text("Circuits are shown for the self-attention of the stack that predicts.")
        return
    layer, head = place
    try:
        computations.composition(model)
    except TraceError as error:  # recorded code of which no matrices are found
        st.info(translate(error.message))
        return
    for message in computations.left_out(model):
        st.caption(translate(message))
    predicts = model_cache.predicts(model)
    left, right = st.columns([2, 3], gap="medium")
    with right:
        composing(model, layer, head)
    if predicts:
        with left:
            copying(model, layer, head)
    if not predicts:
        show_text(
            "This model's files contain no output layer that predicts tokens, so there is no copying "
            "score and no effect on the logits."
        )
    if model_cache.is_recorded(model):
        return
    looks, says = st.columns(2, gap="medium")
    with looks:
        distance = 0
        if model_cache.options(model).positions == "rope":
            st.slider(
                _("Tokens from the key to the query"),
                0,
                FURTHEST,
                **lesson.setting("headreport.distance", 0, range(FURTHEST + 1)),
            )
            distance = lesson.value("headreport.distance", 0, range(FURTHEST + 1))
        st.markdown("**" + _("Pairs with the largest scores") + "**")
        table(computations.pairs(model, "qk", layer, head, distance), _("Query"), _("Key"), _("Score"))
    if predicts:
        with says:
            st.markdown("**" + _("Effect on the logits") + "**")
            table(computations.pairs(model, "ov", layer, head, 0), _("Attended token"), _("Raised token"), _("Logit"))


def copying(model: ModelRef, layer: int, head: int) -> None:
    """The eigenvalues of OV, and their sum over the sum of their sizes."""
    try:
        found = computations.eigenvalues(model, layer, head)
    except TraceError as error:
        st.info(translate(error.message))
        return
    score = float(computations.copying(model)[layer, head])
    st.metric(_("Copying score"), "–" if np.isnan(score) else f"{score:+.2f}")
    show_note(
        "Near 1 the head copies: on the whole it raises the logits of the tokens to which it attends; "
        "near −1 it lowers them; near 0 it does neither. It is the sum of the eigenvalues of $W_E W_V "
        "W_O W_U$ divided by the sum of their absolute values."
    )
    figure = figures.eigenvalue_plane(found)
    chart.show(figure, key="head_report.eigenvalues")


def composing(model: ModelRef, layer: int, head: int) -> None:
    """The heads that this one reads or that read it, clearest first; a click goes there."""
    found = computations.composition(model)
    here = (layer, head)
    rows = [
        (way, first, second, excess)
        for way in found.scores
        for first, second, excess in found.clear(way)
        if here in (first, second)
    ]
    rows = sorted(rows, key=lambda row: -row[3])[:PAIRS]
    st.markdown("**" + _("Which heads read one another") + "**")
    if not rows:
        show_text("None clearly more than chance.")
    else:
        others = [row[2] if row[1] == here else row[1] for row in rows]
        data_table.show(
            {
                _("Way"): [row[0] for row in rows],
                _("Writes"): [_("L{layer} H{head}", layer=row[1][0], head=row[1][1]) for row in rows],
                _("Reads"): [_("L{layer} H{head}", layer=row[2][0], head=row[2][1]) for row in rows],
                _("Above chance"): [round(row[3], 1) for row in rows],
            },
            hide_index=True,
            on_select=lambda: choose(others, here),
            selection_mode="single-row",
            key=f"head_report.composition.{layer}.{head}",
        )
    show_note(
        "Q, K, V: whether the output of the first head becomes a query, a key or a value of the second. "
        "Unit: standard deviations of the same matrices after random rotations. The list contains only "
        "pairs that chance would hardly produce among all {n} pairs and ways. At most {share} of the "
        "listed pairs are false, as measured by pairs in the wrong order, which cannot compose. A click "
        "goes to the other head.",
        n=f"{found.tests:,}",
        share=f"{FALSE:.0%}",
    )


def choose(others: list[tuple[int, int]], here: tuple[int, int]) -> None:
    """The other head of the row that was clicked."""
    rows = st.session_state[f"head_report.composition.{here[0]}.{here[1]}"]["selection"]["rows"]
    if rows and rows[0] < len(others):
        state.update(layer=others[rows[0]][0], head=others[rows[0]][1])


def table(pairs: list[tuple[str, str, float]], row: str, column: str, value: str) -> None:
    """Pairs of tokens, the largest first."""
    said: dict[str, Any] = {
        row: [pair[0] for pair in pairs],
        column: [pair[1] for pair in pairs],
        value: [round(pair[2], 2) for pair in pairs],
    }
    data_table.show(said, hide_index=True)
