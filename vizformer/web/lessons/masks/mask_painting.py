"""A laboratory of the lesson Masks: cells blocked and opened by hand, and the model run with that mask."""

import numpy as np
import streamlit as st

from vizformer import analysis
from vizformer.analysis import CellQuestion, Kind, kinds, n_layers, site_name
from vizformer.analysis.masks import runs
from vizformer.analysis.masks.runs import Expected, layers_masked_alike, painted_run
from vizformer.components import mask, matrix
from vizformer.explain import Masked, masked_attention
from vizformer.messages import ranges
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.catalogue.subject_functions import of_run
from vizformer.web.lessons.masks.masked_head import causal_on, notes, place, record, table, tokens
from vizformer.web.link import mask_bitmap, state
from vizformer.web.link.mask_bitmap import Cells
from vizformer.web.widgets import head_downloads, lesson, row_names
from vizformer.web.widgets.cell_question import LARGEST
from vizformer.web.widgets.downloads import take_away
from vizformer.web.widgets.lab import Laboratory, aside, controls
from vizformer.web.words import labels
from vizformer.web.words.errors import plain

lab = Laboratory("masks", "paint", wide=True)
_PAINT = "masks.paint"
LISTED = 10  # names of tokens in a sentence


painted = of_run(painted_run)


@cached
def expectations(subject: Subject, attention: Kind, flips: Cells, layers: tuple[int, ...]) -> tuple[Expected, ...]:
    """The predictions at every position of the last stack, before and after cells were turned over in these layers."""
    return runs.expectations(subject.checkpoint, subject.trace, painted(subject, attention, flips, layers))


@cached
def asked_cell(subject: Subject, attention: Kind) -> CellQuestion | None:
    return analysis.cell_question(subject.trace, attention, LARGEST)


@lab.draws
def draw(subject: Subject) -> None:
    with controls():
        names = {kind: labels.kind_label(kind) for kind in kinds(subject.trace)}
        attention = lab.buttons("on", names, causal_on(subject), label_visibility="collapsed")
        why = place(subject, attention)
    view = state.view()
    layers = layers_masked_alike(subject.trace, attention, view.layer)
    queries, keys = tokens(subject, attention)
    rows, columns = min(len(queries), mask.LARGEST), min(len(keys), mask.LARGEST)
    kept = mask_bitmap.painted(rows, columns)
    flips = mask.peek(key=f"{_PAINT}.{attention}", selected=kept)
    flips = tuple((q, k) for q, k in flips if q < rows and k < columns)
    if flips != kept:
        mask_bitmap.keep(flips)
    own = record(subject, attention, view.layer).reason(view.head).cpu().numpy()
    run = painted(subject, attention, flips, layers)
    masked = masked_attention(run[site_name(attention, view.layer)], view.head)
    left, right = st.columns([3, 2], gap="large")
    with left:
        rows_named, columns_named = row_names.queries(subject, attention), labels.texts(keys)
        drawn = mask.MaskView(rows_named, columns_named, masked.reasons, weights=masked.weights, own=own)
        mask.mount(drawn, paintable=True, selected=flips, key=f"{_PAINT}.{attention}")
        told = [head_downloads.head_name(attention, view.layer, view.head), lab.text("painted")]
        take_away(*head_downloads.mask(drawn, " · ".join(told)), key=f"{_PAINT}.{attention}")
        with st.container(horizontal=True):
            known = own[:rows, :columns] > 0
            masks = {"reset": known, "open": np.zeros_like(known), "causal": ~np.tri(rows, columns, dtype=bool)}
            for name, wanted in masks.items():
                cells = tuple((int(q), int(k)) for q, k in np.argwhere(known != wanted))
                if cells or name == "reset":  # else it is the model's own mask
                    done = not (cells or flips)
                    st.button(
                        lab.text(name), on_click=mask_bitmap.keep, args=(cells,), disabled=done, key=f"masks.{name}"
                    )
        aside(why)
        _blind(masked, row_names.numbered(subject, attention))
        if len(layers) < n_layers(subject.trace, attention):
            lab.note("layers", layers=ranges(layers))
        notes(lab, subject, attention, masked, own=True)
    with right:
        _expected(subject, attention, flips, layers)
    lesson.ask(question(subject, attention))


@lab.asks("block")
def question(subject: Subject, attention: Kind | None = None) -> lesson.CellChoice | None:
    attention = attention or causal_on(subject)
    if (found := asked_cell(subject, attention)) is None:  # a single token
        return None
    queries, keys = (row[:LARGEST] for row in tokens(subject, attention))
    names = {"query": labels.numbered(queries)[found.query], "key": labels.numbered(keys)[found.key]}
    weight = f"{found.weights[found.query, found.key]:.3f}"
    return lesson.CellChoice(
        grid=lesson.Grid(labels.texts(queries), labels.texts(keys), found.weights),
        answer=(found.query, found.key),
        **lab.asked("block", subject, attention, layer=found.layer, head=found.head, weight=weight, **names),
    )


def _blind(masked: Masked, names: list[str]) -> None:
    """Says what becomes of rows in which everything is blocked."""
    if masked.blind:
        rows = ", ".join(plain(names[i]) for i in masked.blind[:LISTED])
        st.warning(lab.text("blind", rows=rows + " …" * (len(masked.blind) > LISTED)))
        lab.note("nothing")


def _expected(subject: Subject, attention: Kind, flips: Cells, layers: tuple[int, ...]) -> None:
    """What is predicted at every position, before and after painting in these layers."""
    if not model_cache.predicts(subject.model):
        lab.note("headless")
        return
    stack = "decoder" if "decoder" in subject.trace.tokens else "encoder"
    names = labels.numbered(subject.trace.tokens[stack])[: mask.LARGEST]
    cells = [
        [
            f"{row.before.text} {labels.percent(row.before_probability)}",
            f"{row.after.text} {labels.percent(row.after_probability)}",
            "0" if row.moved == 0 else f"{row.moved:.2g}",
        ]
        for row in expectations(subject, attention, flips, layers)[: mask.LARGEST]
    ]
    st.html(matrix.style())
    columns = lab.columns("before", "after", "moved")
    st.html(table(lab.text(f"expected.{stack}"), columns, names, cells))
    lab.note("moved")
