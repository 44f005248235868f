"""A laboratory of the lesson Masks: cells blocked and opened by hand, and the model run with that mask."""

import numpy as np
import streamlit as st

from vizformer.analysis import Kind, kinds, n_layers
from vizformer.components import mask, matrix
from vizformer.explain import Masked
from vizformer.messages import ranges
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.masks import boxes, computations, wording
from vizformer.web.lessons.masks.which_attention import tokens
from vizformer.web.link import mask_bitmap, state
from vizformer.web.widgets import head_downloads, lesson, row_names
from vizformer.web.widgets.cell_question import LARGEST
from vizformer.web.widgets.downloads import take_away
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words import labels
from vizformer.web.words.figure_words import words
from vizformer.web.words.i18n import _

_PAINT = "masks.paint"


@laboratory
def painted_by_hand(subject: Subject) -> None:
    """Cells blocked and opened by hand; the model runs with that mask."""
    have = kinds(subject.trace)
    default = "decoder" if "decoder" in have else "encoder"
    attention: Kind = st.segmented_control(
        _("Attention"),
        have,
        format_func=labels.kind_label,
        required=True,
        label_visibility="collapsed",
        **lesson.setting("masks.on", default, have),
    )
    (buttons,) = boxes.place(subject, attention, 3)
    boxes.own_mask(subject, attention)
    layers = computations.alike(subject, attention, state.view().layer)
    if len(layers) < n_layers(subject.trace, attention):
        st.caption(
            _(
                "What you paint holds in the layers that have this mask ({layers}); the others keep theirs.",
                layers=ranges(layers),
            )
        )
    queries, keys = tokens(subject, attention)
    rows, columns = min(len(queries), mask.LARGEST), min(len(keys), mask.LARGEST)
    kept = mask_bitmap.painted(rows, columns)
    flips = mask.peek(key=f"{_PAINT}.{attention}", selected=kept)
    flips = tuple((q, k) for q, k in flips if q < rows and k < columns)
    if flips != kept:
        mask_bitmap.keep(flips)
    view = state.view()
    masked, own = computations.painted_head(subject, attention, flips, view.layer, view.head)
    with buttons.container(horizontal=True):
        st.button(
            _("As the model has it"), on_click=mask_bitmap.keep, args=((),), disabled=not flips, key="masks.reset"
        )
        first = own[:rows, :columns] > 0
        for name, label, wanted in (
            ("open", _("Open everything"), np.zeros_like(first)),
            ("causal", _("Block the future"), ~np.tri(rows, columns, dtype=bool)),
        ):
            cells = tuple((int(q), int(k)) for q, k in np.argwhere(first != wanted))
            if cells:  # else it is the model's own mask
                st.button(label, on_click=mask_bitmap.keep, args=(cells,), key=f"masks.{name}")
    left, right = st.columns([3, 2], gap="large")
    with left:
        drawn, texts = (
            mask.MaskView(
                row_names.queries(subject, attention),
                labels.texts(keys),
                masked.reasons,
                weights=masked.weights,
                own=own,
            ),
            words(mask.ENGLISH),
        )
        mask.mount(drawn, paintable=True, selected=flips, words=texts, key=f"{_PAINT}.{attention}")
        told = " · ".join([head_downloads.head_name(attention, view.layer, view.head), _("Painted by hand")])
        take_away(*head_downloads.mask(drawn, told, texts), key=f"{_PAINT}.{attention}")
        boxes.only_first(max(masked.reasons.shape))
        _blind(masked, row_names.numbered(subject, attention))
        boxes.proof(masked.proof, own=True)
    with right:
        _expected(subject, attention, flips, layers)
    lesson.ask(block_question(subject, attention))


def block_question(subject: Subject, attention: Kind) -> lesson.CellChoice | None:
    """Which cell must be blocked so that one token no longer sees another?"""
    asked = computations.cell_question(subject, attention, LARGEST)
    if asked is None:  # a single token
        return None
    queries, keys = (row[:LARGEST] for row in tokens(subject, attention))
    query, key = labels.numbered(queries)[asked.query], labels.numbered(keys)[asked.key]
    return lesson.CellChoice(
        "masks",
        "block",
        _(
            "“{query}” shall no longer see “{key}” in this attention. Which cell of the mask must be blocked?",
            query=query,
            key=key,
        ),
        lesson.Grid(labels.texts(queries), labels.texts(keys), asked.weights),
        (asked.query, asked.key),
        _(
            "The row of the one that asks, the column of the one that is seen. In layer {layer}, head {head} it holds a "
            "weight of {weight}. Block it above and see: the other cells of the row grow until they add up to 1 again. In "
            "the first layer no other row changes.",
            layer=asked.layer,
            head=asked.head,
            weight=f"{asked.weights[asked.query, asked.key]:.3f}",
        ),
        about=f"{subject} {attention}",
    )


def _blind(masked: Masked, names: list[str]) -> None:
    """Says what becomes of rows in which everything is blocked."""
    if masked.blind:
        rows = wording.listed([names[i] for i in masked.blind])
        st.warning(_("Everything is blocked for some queries:") + " " + rows)
        st.caption(
            _(
                "Their weights are 0, and so is what comes back: softmax of nothing but −∞ is 0/0, and the kernel "
                "gives 0 instead of NaN. The residual stream passes such a position by, so the model still predicts."
            )
        )


def _expected(subject: Subject, attention: Kind, flips: mask_bitmap.Cells, layers: tuple[int, ...]) -> None:
    """What is predicted at every position, before and after painting in these layers."""
    if not model_cache.predicts(subject.model):
        st.caption(_("These weights came without a head that predicts tokens."))
        return
    stack = "decoder" if "decoder" in subject.trace.tokens else "encoder"
    names = labels.numbered(subject.trace.tokens[stack])[: mask.LARGEST]
    rows = computations.expectations(subject, attention, flips, layers)[: mask.LARGEST]
    cells = [
        [
            f"{row.before.text} {labels.percent(row.before_probability)}",
            f"{row.after.text} {labels.percent(row.after_probability)}",
            "0" if row.moved == 0 else f"{row.moved:.2g}",
        ]
        for row in rows
    ]
    st.html(matrix.style())
    st.html(
        wording.table(
            _("The most probable token at each position") if stack == "encoder" else _("The most probable next token"),
            [_("before"), _("after"), _("largest Δ")],
            names,
            cells,
        )
    )
    st.caption(_("Largest Δ: by how much a logit has moved at most; 0 is exactly 0."))
