"""The laboratory All heads: the maps side by side, what each head of a layer does, and which keys matter."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import streamlit as st

from vizformer import analysis, figures
from vizformer.analysis import HabitQuestion, Kind, head_maps, head_outputs, kinds
from vizformer.analysis.causes.ablation import Part
from vizformer.analysis.causes.asked_prompts import ASKED, KINDS, MODEL, HeadRoles, roles_of_heads
from vizformer.analysis.corpus_heads.report import digest
from vizformer.analysis.heads import measures
from vizformer.analysis.heads.measures import HeadStatistics
from vizformer.assets import asset
from vizformer.components import attention, table
from vizformer.components.table import Number, Row
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.catalogue.subject_functions import of_run
from vizformer.web.frame import sitemap
from vizformer.web.link import state
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.link.view import written_query
from vizformer.web.widgets import attention_selector, chart, head_downloads, lesson, map_words
from vizformer.web.widgets.cell_question import LARGEST
from vizformer.web.widgets.chart import take_away
from vizformer.web.widgets.choices import kind_of_attention
from vizformer.web.widgets.lab import Laboratory, aside
from vizformer.web.words import labels, part_names
from vizformer.web.words.i18n import translate, words

lab = Laboratory("heads", "all", wide=True)
SPREAD = 0.75  # of the visible keys: from so many on, a head reads from almost all of them


key_contributions = of_run(head_outputs.key_contributions)


@cached
def head_statistics(subject: Subject, kind: Kind) -> HeadStatistics:
    return measures.head_statistics(head_maps(subject.trace, kind), cross=kind == "cross")


@cached
def habit(subject: Subject, kind: Kind) -> HabitQuestion | None:
    return analysis.habit_question(subject.trace, kind, LARGEST, head_statistics(subject, kind))


@lab.draws
def draw_all_heads(subject: Subject) -> None:
    st.html(table.style())
    trace, config, usable = subject.trace, subject.config, kinds(subject.trace)
    kind = kind_of_attention(usable, lab.text("kind"))
    queries, keys = (trace.tokens[stack] for stack in labels.stacks(kind))
    n_layers = config.layers_of(kind)
    why = attention_selector.open_on_a_head(subject, kind)
    view = state.fit(layer=n_layers, head=config.n_heads, query=len(queries))
    last = st.session_state.get("heads.selection", attention.Selection())
    looked = {"layer": view.layer, "head": view.head, "query": view.query_of(queries), "view": view.numbers}
    wanted = replace(last, **looked)
    shape = (n_layers, config.n_heads, len(queries), len(keys))
    names = (map_words.queries(subject, kind), labels.texts(keys))
    shown_as: dict[str, Any] = {
        "query_tokens": names[0],
        "key_tokens": names[1],
        "words": words(attention.ENGLISH),
    }
    payload = attention_selector.packed(subject, kind, shape)
    selection = attention.mount(payload, selected=wanted, key="heads.grid", **shown_as)
    st.session_state["heads.selection"] = selection
    query = written_query(selection.query, queries)
    state.update(layer=selection.layer, head=selection.head, query=query, numbers=selection.view)
    map_words.caption(subject, kind, selection.query)
    map_words.say(subject, kind, selection.layer, selection.head)
    aside(why)
    place = (selection.layer, selection.head)

    def page() -> str:
        return attention.to_html(head_downloads.in_a_file(subject, kind, shape, *place), selected=selection, **shown_as)

    one = head_downloads.one_head(subject, kind, *place, *names, scores=selection.view == "scores", page=page)
    take_away(one, *head_downloads.all_heads(subject, kind, shape), key="heads.grid")
    lesson.ask(all_heads_question(subject, kind))
    draw_roles(lab, subject)
    found = head_statistics(subject, kind)
    _doings(found, *place)
    _importance(subject)


@lab.asks("habit")
def all_heads_question(subject: Subject, kind: Kind | None = None) -> lesson.CellChoice | None:
    kind = kind or kinds(subject.trace)[0]
    if (asked := habit(subject, kind)) is None:  # a single token
        return None
    queries, keys = (subject.trace.tokens[stack][:LARGEST] for stack in labels.stacks(kind))
    said = lab.asked(
        "habit",
        subject,
        kind,
        form="deed" if asked.habit else "most",
        deed=asked.habit and lab.text(f"deed.{asked.habit}"),
        layer=asked.layer,
        head=asked.head,
        query=labels.numbered(queries)[asked.query],
        key=labels.numbered(keys)[asked.key],
        weight=f"{asked.weights[asked.query, asked.key]:.3f}",
    )
    grid = lesson.Grid(labels.texts(queries), labels.texts(keys), asked.weights)
    return lesson.CellChoice(grid=grid, answer=(asked.query, asked.key), **said)


def _doings(found: HeadStatistics, layer: int, chosen: int) -> None:
    """A sentence for every head of a layer, from measures of this sentence."""
    rows = [
        Row(
            lab.text("head", head=head),
            tendency(found, layer, head),
            Number(float(keys), f"{keys:.1f}"),
            kind="marked" if head == chosen else "",
        )
        for head, keys in enumerate(found.effective[layer])
    ]
    columns = lab.columns("here", "keys")
    st.html(table.to_html(("", *columns), rows, caption=lab.text("layer", layer=layer)))
    lab.note("keys", visible=f"{found.visible[layer]:.1f}")


def tendency(found: HeadStatistics, layer: int, head: int) -> str:
    """What a head does in this sentence, in words."""
    if (deed := found.leading(layer, head)) is not None:
        share = f"{found.shares[deed][layer, head]:.0%}"
        return lab.text("doing", deed=lab.text(f"deed.{deed}"), share=share)
    keys, visible = float(found.effective[layer, head]), float(found.visible[layer])
    name = "spread" if keys >= SPREAD * visible else "nowhere"
    return lab.text(name, keys=f"{keys:.1f}", visible=f"{visible:.1f}")


def _importance(subject: Subject) -> None:
    """The key with the largest weight beside the key from which most arrives."""
    view, query = state.view(), attention_selector.query(subject)
    names = labels.numbered(subject.trace.tokens[labels.stacks(view.kind)[1]])
    found = key_contributions(subject, attention_selector.site(), view.head, query)
    rows = [
        Row(
            names[j],
            Number(found.weights[j], f"{found.weights[j]:.4f}"),
            found.norms[j],
            found.value_norms[j],
            kind="marked" if j == found.longest else "",
        )
        for j in found.leading(4)
    ]
    columns = lab.columns("key", "weight", "moved", "value")
    caption = lab.text("importance", layer=view.layer, head=view.head, query=query)
    st.html(table.to_html(columns, rows, bar=1, caption=caption))


@cached
def roles() -> HeadRoles | None:
    """The bundled measurement of the heads' roles; None where it was measured with other weights."""
    said = json.loads(asset("lessons", "heads", "roles.json").read_text(encoding="utf-8"))
    if said["weights"] != digest(asset("models", MODEL)):
        return None
    effects = {kind: (np.array(one["values"]), np.array(one["odds"])) for kind, one in said["kinds"].items()}
    return roles_of_heads(effects, [Part(sublayer, head) for sublayer, head in said["heads"]])


def draw_roles(lab: Laboratory, subject: Subject) -> None:
    """The shares of the heads of cross-attention, and for each kind whether a head carries it as its own."""
    found = roles() if subject.model == ModelRef("bundled", MODEL) else None
    if found is None:
        return
    crossing = [at for at, part in enumerate(found.heads) if part.sublayer.endswith("cross")]
    names = lab.texts("carries", KINDS)
    figure = figures.matrix_heatmap(
        np.round(100 * found.shares[:, crossing], 2) + 0.0,  # as written in the cells; (no minus before a 0)
        [names[kind] for kind in KINDS],
        [f"{found.heads[at].sublayer.split('.')[1]}.{found.heads[at].head}" for at in crossing],
        column_title=lab.text("crossing"),
        title=lab.text("lost"),
    )
    chart.show(figure, key="heads.carried", title_above=True)
    st.markdown("\n".join(f"- {_said(lab, found, kind, names)}" for kind in ASKED))
    typical = labels.percent(float(np.median(found.shares.max(0))))
    lab.note("baseline", n=found.rows[0], heads=len(found.heads), typical=typical)
    st.page_link(
        sitemap.WHAT_IF.file,
        label=lab.text("sets", page=translate(sitemap.WHAT_IF.title)),
        query_params={"dials": f"whatif.way:set~whatif.set:negation.{MODEL}"},
    )


def _said(lab: Laboratory, found: HeadRoles, kind: str, names: dict[str, str]) -> str:
    at, head = found.kinds.index(kind), found.strongest(kind)
    other = found.most_of_others(kind, head)
    share, low, high, most = (
        labels.percent(float(one))
        for one in (found.shares[at, head], found.low[at, head], found.high[at, head], found.shares[other, head])
    )
    n = int(found.own[at].sum())
    return lab.text(
        "role",
        form=("none", "one")[n] if n < 2 else "several",
        n=n,
        kind=names[kind],
        head=part_names.name(found.heads[head]),
        share=share,
        low=low,
        high=high,
        most=most,
        other=names[found.kinds[other]],
    )
