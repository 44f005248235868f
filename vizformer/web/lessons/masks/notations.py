"""A laboratory of the lesson Masks: one mask in four notations, and two of them mixed up."""

import math

import numpy as np
import streamlit as st

from vizformer.analysis.masks.mistakes import mixed_up, nan_rows, notations
from vizformer.components import matrix
from vizformer.explain import Masked
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.masks import boxes, computations, snippets, wording
from vizformer.web.lessons.masks.which_attention import causal_on, tokens
from vizformer.web.link import state
from vizformer.web.widgets import lesson, row_names
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words import labels
from vizformer.web.words.i18n import _


@laboratory
def four_notations(subject: Subject) -> None:
    """The causal mask as four tables with the call each belongs to, and the weights where two are mixed up."""
    attention = causal_on(subject)
    boxes.place(subject, attention, 2)
    view = state.view()
    masked = computations.causal_head(subject, view.layer, view.head)
    agreed = computations.agreement(subject, view.layer, view.head)
    n = len(masked.scores)
    queries = row_names.queries(subject, attention)[: wording.SHOWN]
    keys = labels.texts(tokens(subject, attention)[1])[: wording.SHOWN]
    shown = masked.blocked[: wording.SHOWN, : wording.SHOWN]
    st.html(matrix.style())
    if n > wording.SHOWN:
        st.caption(_("The tables show the first {shown} of {n} tokens.", shown=wording.SHOWN, n=n))
    halves = [column for __ in range(2) for column in st.columns(2)]
    for half, (name, mask) in zip(halves, notations(masked.blocked).items(), strict=True):
        cells = [[_written(value) for value in row] for row in mask[: wording.SHOWN, : wording.SHOWN].tolist()]
        with half.container(border=True):
            html = wording.table(wording.notation_name(name), keys, queries, cells, shown)
            st.html(f'<div class="vf-compact">{html}</div>')
            st.code(lesson.pasteable(snippets.NOTATIONS[name], {"n": n}), language="python", wrap_lines=True)
            st.caption(
                _(
                    "Checked: z of this head differs from the arithmetic by at most {difference}.",
                    difference=f"{agreed[name]:.1g}",
                )
            )
    st.caption(_("The same in PyTorch"))
    calls = snippets.notation_calls({name: wording.notation_name(name) for name in snippets.NOTATIONS})
    st.code(lesson.pasteable(calls, {"scores": masked.scores, "n": n}), language="python", wrap_lines=True)
    lesson.ask(notation_question(subject, masked))
    if st.toggle(
        _("Hand a True = visible mask to a call that reads True = blocked"), **lesson.setting("masks.mixed", False)
    ):
        weights = mixed_up(masked.scores, masked.blocked)
        cells = [[matrix.number(value, 2) for value in row] for row in weights[: wording.SHOWN, : wording.SHOWN]]
        st.html(wording.table(_("The weights then"), keys, queries, cells, shown))
        st.error(
            _(
                "Every query now sees the future and nothing else. Rows that are NaN, because nothing is left to see: "
                "{rows} of {n}. No call has complained.",
                rows=nan_rows(weights),
                n=n,
            )
        )


def _written(value: object) -> str:
    if isinstance(value, float):
        return "−∞" if math.isinf(value) else "0"
    return str(value)


def notation_question(subject: Subject, masked: Masked) -> lesson.Choice:
    """What does the last query see through a mask that is read the other way round?"""
    last = len(masked.scores) - 1
    weights = mixed_up(masked.scores, masked.blocked)[last]
    choices = [
        _("all keys, as it should"),
        _("itself alone"),
        _("all keys but itself"),
        _("no key at all: its weights are not numbers (NaN)"),
    ]
    answer = 3 if np.isnan(weights).all() else 1 if np.flatnonzero(weights).tolist() == [last] else 2
    return lesson.Choice(
        "masks",
        "notation",
        _(
            "The causal mask with True = visible is handed to nn.MultiheadAttention, which reads True = blocked. What does "
            "the last query, “{query}”, see?",
            query=row_names.numbered(subject, causal_on(subject))[last],
        ),
        choices,
        answer,
        _(
            "Its row was True everywhere, for all {n} keys, so everything in it is now blocked: softmax divides 0 by 0. "
            "Every other query sees what comes after it, and nothing else.",
            n=last + 1,
        ),
        about=f"{subject}",
    )
