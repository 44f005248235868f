"""The laboratory All heads: the maps side by side, what each head of a layer does, and which keys matter."""

from dataclasses import replace
from typing import Any

import streamlit as st

from vizformer.analysis import Kind, kinds
from vizformer.components import attention, table
from vizformer.components.table import Number, Row
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.heads import computations, wording
from vizformer.web.link import state
from vizformer.web.link.view import written_query
from vizformer.web.widgets import attention_selector, head_downloads, lesson, packed_heads, row_names
from vizformer.web.widgets.cell_question import LARGEST
from vizformer.web.widgets.downloads import take_away
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words import labels
from vizformer.web.words.figure_words import words
from vizformer.web.words.i18n import _


@laboratory
def every(subject: Subject) -> None:
    """All heads side by side, the chosen one large, and what each of its layer does."""
    st.html(table.style())
    trace, config = subject.trace, subject.config
    usable = kinds(trace)
    kind = state.fit(kind=usable).kind
    if len(usable) > 1:
        st.segmented_control(
            _("Kind of attention"), usable, format_func=labels.kind_label, required=True, **state.bind("kind")
        )
    queries, keys = (trace.tokens[stack] for stack in labels.stacks(kind))
    n_layers = config.layers_of(kind)
    view = state.fit(layer=n_layers, head=config.n_heads, query=len(queries))
    last = st.session_state.get("heads.selection", attention.Selection())
    looked = {"layer": view.layer, "head": view.head, "query": view.query_of(queries), "view": view.numbers}
    wanted = replace(last, **looked)
    shape = (n_layers, config.n_heads, len(queries), len(keys))
    names = (row_names.queries(subject, kind), labels.texts(keys))
    shown_as: dict[str, Any] = {"query_tokens": names[0], "key_tokens": names[1], "words": words(attention.ENGLISH)}
    payload = packed_heads.packed(subject, kind, shape)
    selection = attention.mount(payload, selected=wanted, key="heads.grid", **shown_as)
    st.session_state["heads.selection"] = selection
    query = written_query(selection.query, queries)
    state.update(layer=selection.layer, head=selection.head, query=query, numbers=selection.view)
    row_names.caption(subject, kind, selection.query)
    take_away(
        head_downloads.one_head(
            subject,
            kind,
            selection.layer,
            selection.head,
            *names,
            scores=selection.view == "scores",
            page=lambda: attention.to_html(
                head_downloads.in_a_file(subject, kind, shape, selection.layer, selection.head),
                selected=selection,
                **shown_as,
            ),
        ),
        *head_downloads.all_heads(subject, kind, shape),
        key="heads.grid",
    )
    lesson.ask(habit_question(subject, kind))
    experts(subject, kind)
    doings(subject, selection.layer, selection.head)
    importance(subject)


def experts(subject: Subject, kind: Kind) -> None:
    """Which head of all layers is the expert of this sentence, for everything that some head clearly does."""
    found = computations.head_statistics(subject, kind)
    named = [
        Row(
            (wording.deed(deed), _("layer {layer}, head {head}", layer=layer, head=head), Number(share, f"{share:.0%}"))
        )
        for deed, (layer, head) in found.experts().items()
        for share in [float(found.shares[deed][layer, head])]
    ]
    if not named:
        st.caption(_("No head of this model clearly does one thing in this sentence."))
        return
    columns = (_("what it does"), _("the expert"), _("share of its attention"))
    st.html(table.to_html(columns, named, bar=2, caption=_("The experts of this sentence")))


def doings(subject: Subject, layer: int, chosen: int) -> None:
    """A sentence for every head of a layer, from measures of this sentence."""
    found = computations.head_statistics(subject, state.view().kind)
    rows = [
        Row(
            (
                _("head {head}", head=head),
                wording.tendency(found, layer, head),
                Number(float(found.effective[layer, head]), f"{found.effective[layer, head]:.1f}"),
            ),
            "marked" if head == chosen else "",
        )
        for head in range(found.effective.shape[1])
    ]
    columns = ("", _("in this sentence"), _("keys that it reads from"))
    st.html(table.to_html(columns, rows, caption=_("The heads of layer {layer}", layer=layer)))
    st.caption(
        _(
            "Keys that it reads from: exp of the entropy of its weights, averaged over the queries. A query here sees "
            "{visible} keys on average.",
            visible=f"{found.visible[layer]:.1f}",
        )
    )


def importance(subject: Subject) -> None:
    """The key with the largest weight beside the key from which most arrives."""
    view, query = state.view(), attention_selector.query(subject)
    names = labels.numbered(subject.trace.tokens[labels.stacks(view.kind)[1]])
    found = computations.key_contributions(subject, attention_selector.site(), view.head, query)
    value_norms = found.value_norms
    rows = [
        Row(
            (names[j], Number(found.weights[j], f"{found.weights[j]:.4f}"), found.norms[j], value_norms[j]),
            "marked" if j == found.longest else "",
        )
        for j in found.leading(4)
    ]
    columns = (_("token (key)"), _("weight a"), _("length of a · v W_O"), _("length of v W_O"))
    caption = _(
        "Layer {layer}, head {head}, query {query}: the largest weights and what they bring",
        layer=view.layer,
        head=view.head,
        query=query,
    )
    st.html(table.to_html(columns, rows, bar=1, caption=caption))


def habit_question(subject: Subject, kind: Kind) -> lesson.CellChoice | None:
    """In which cell does a head do what it mostly does?"""
    asked = computations.habit_question(subject, kind, LARGEST)
    if asked is None:  # a single token
        return None
    queries, keys = (subject.trace.tokens[stack][:LARGEST] for stack in labels.stacks(kind))
    query, key = labels.numbered(queries)[asked.query], labels.numbered(keys)[asked.key]
    return lesson.CellChoice(
        "heads",
        "habit",
        wording.habit(asked, query, key),
        lesson.Grid(labels.texts(queries), labels.texts(keys), asked.weights),
        (asked.query, asked.key),
        _(
            "The row is the one that asks, “{query}”; the column is the one that is looked at, “{key}”: a weight of "
            "{weight}. Choose this head above: in its picture it is the same cell.",
            query=query,
            key=key,
            weight=f"{asked.weights[asked.query, asked.key]:.3f}",
        ),
        about=f"{subject} {kind}",
    )
