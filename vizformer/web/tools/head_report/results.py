"""A finished report: a picture of all heads coloured by a measure, a table of them, and which heads are alike."""

from typing import Any

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.analysis.corpus_heads import Corpus, KindReport
from vizformer.components import cells
from vizformer.figures import head_report as head_figures
from vizformer.web.catalogue import head_reports
from vizformer.web.link import state
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.tools.head_report import chosen_head, wording
from vizformer.web.tools.head_report.circuits import circuits
from vizformer.web.tools.head_report.one_head import one_head
from vizformer.web.widgets import chart, data_table, folded_box, lesson
from vizformer.web.widgets.downloads import Picture, caption, take_away
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words import labels
from vizformer.web.words.figure_words import words
from vizformer.web.words.i18n import _, translate

ROW, MOST_ROWS = 35, 12  # px, and rows of the table before it scrolls


@laboratory
def results(model: ModelRef, corpus: Corpus, name: str) -> None:
    """Everything that is shown of a report; what is clicked in it draws nothing else."""
    report = head_reports.report(name)
    kinds = list(report.kinds)
    view = state.fit(kind=kinds)
    if len(kinds) > 1:
        names = {kind: labels.kind_label(kind) for kind in kinds}
        st.segmented_control(
            _("Kind of attention"), kinds, format_func=names.__getitem__, required=True, **state.bind("kind")
        )
        view = state.view()
    found = report.kinds[view.kind]
    state.fit(layer=found.shape[0], head=found.shape[1])
    if report.texts < report.given:
        st.caption(
            _(
                "{n} of {given} texts could be read by this model.",
                n=f"{report.texts:,}",
                given=f"{report.given:,}",
            )
        )
    if model.source == "bundled" and model.name == wording.BY_HAND:
        with st.expander(_("Why each weight of this model is what it is")):
            for message in wording.WHY:
                st.text(translate(message))
    measure = chosen_measure(found)
    picture(found, measure)
    table(found, measure)
    place = chosen_head.place(found, measure)
    one_head(model, corpus, report, found, measure, place)
    with folded_box.folded(_("Circuits from the weights"), key="head_report.circuits") as is_open:
        if is_open:
            circuits(model, found.kind, place)
    with folded_box.folded(_("Which heads are alike"), key="head_report.alike") as is_open:
        if is_open:
            alike(found)
    st.download_button(
        _("All numbers as a table (CSV)"),
        data=lambda: report.csv().encode(),
        file_name=f"heads-{report.model}.csv",
        mime="text/csv",
        on_click="ignore",
        key="head_report.csv",
    )


def chosen_measure(found: KindReport) -> str:
    """What colours the picture and sorts the table."""
    known = [name for name in wording.TITLES if np.isfinite(found.mean[name]).any()]
    titles = {name: wording.title(name) for name in known}
    st.selectbox(
        _("Measure"),
        known,
        format_func=titles.__getitem__,
        width=420,
        **lesson.setting("headreport.measure", known[0], known),
    )
    measure = lesson.value("headreport.measure", known[0], known)
    st.caption(wording.meaning(measure))
    return measure


def picture(found: KindReport, measure: str) -> None:
    """A cell for every head; a click chooses it."""
    values = found.mean[measure]
    if max(found.shape) > cells.LARGEST or measure not in wording.SHARES or not np.isfinite(values).all():
        figure = figures.measure_of_heads(
            values, measure=wording.title(measure), signed=measure == "copying", words=words(head_figures.ENGLISH)
        )
        chart.show(figure, key="head_report.picture")
        return
    place = chosen_head.place(found, measure)
    said = words(cells.ENGLISH) | {
        "grid_label": _(
            "Rows are layers, columns are heads. The arrow keys move from cell to cell, Enter chooses one."
        ),
        "cell": _("layer {row}, head {column}"),
        "none": _("No head is chosen."),
    }
    chosen = cells.mount(
        [_("L{layer}", layer=layer) for layer in range(found.shape[0])],
        [_("H{head}", head=head) for head in range(found.shape[1])],
        values=values,
        selected=place,
        words=said,
        key="head_report.cells",
    )
    figure_words, name = words(head_figures.ENGLISH), wording.title(measure)
    take_away(
        Picture(
            f"heads-{measure}",
            caption(name, sentence=False),
            lambda: figures.measure_of_heads(values, measure=name, words=figure_words),
        ),
        key="head_report.cells",
    )
    if chosen is not None and chosen != place:
        chosen_head.choose(*chosen)


def table(found: KindReport, measure: str) -> None:
    """Every head, sorted by the measure; the boxes above leave some out, a click on a row chooses it."""
    values = found.mean[measure]
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    least = low
    if high > low:
        least = st.slider(
            _("Only heads whose measure is at least"),
            low,
            high,
            low,
            step=(high - low) / 100,
            format="%.2f",
            key=f"head_report.least.{found.kind}.{measure}",
        )
    order = np.argsort(-np.where(np.isfinite(values), values, -np.inf), axis=None, kind="stable")
    places = [tuple(int(at) for at in np.unravel_index(index, found.shape)) for index in order]
    places = [place for place in places if values[place] >= least - 1e-12]
    if not places:
        return
    data_table.show(
        columns(found, measure, places),
        hide_index=True,
        height=ROW * (1 + min(len(places), MOST_ROWS)) + 2,
        on_select=lambda: choose(places),
        selection_mode="single-row",
        key="head_report.table",
    )
    st.caption(_("A click in the first column of a row shows that head below; a click on a title sorts."))


def choose(places: list[tuple[int, ...]]) -> None:
    """The row that was clicked."""
    rows = st.session_state["head_report.table"]["selection"]["rows"]
    if rows and rows[0] < len(places):
        layer, head = places[rows[0]]
        chosen_head.choose(layer, head)


def columns(found: KindReport, measure: str, places: list[tuple[int, ...]]) -> dict[str, Any]:
    """The table by its columns: the chosen measure first, with its spread over the texts."""
    grouped = found.n_kv_heads < found.shape[1]
    table: dict[str, Any] = {
        _("Layer"): [place[0] for place in places],
        _("Head"): [place[1] for place in places],
    }
    if grouped:
        table[_("Group")] = [found.group(place[1]) for place in places]
    for name in [measure, *(name for name in wording.TITLES if name != measure)]:
        values = found.mean[name]
        if not np.isfinite(values).any():
            continue
        table[wording.title(name)] = [_rounded(values[place]) for place in places]
        if name == measure and np.isfinite(found.spread[name]).any():
            table[_("± over texts")] = [_rounded(found.spread[name][place]) for place in places]
    if found.sign.any():
        table[_("Sign of OV")] = [
            translate(wording.SIGNS[int(found.sign[place])]) if found.sign[place] else None for place in places
        ]
    table[_("Cluster")] = [int(found.cluster[place]) for place in places]
    return table


def _rounded(value: float) -> float | None:
    return round(float(value), 3) if np.isfinite(value) else None


def alike(found: KindReport) -> None:
    """The cosines of every two heads, those of a cluster side by side."""
    if not found.similarity.size:
        st.text(_("This model has too many heads to compare every two."))
        return
    order = np.argsort(found.cluster.ravel(), kind="stable")
    n_heads = found.shape[1]
    names = [f"L{index // n_heads} H{index % n_heads}" for index in order]
    figure = figures.likeness(found.similarity[np.ix_(order, order)], names, words=words(head_figures.ENGLISH))
    chart.show(figure, key="head_report.likeness")
    sizes = np.bincount(found.cluster.ravel())
    st.caption(
        _(
            "Cosine of the heads' maps over all texts, after subtracting even attention, without the first token and "
            "the tokenizer's "
            "marks, where heads rest. Empty: one of the two attends too little elsewhere. Heads whose cosine is 0.7 "
            "or more on average, and whose OV has no opposite signs, are one cluster. Clusters: {n}; heads in the largest: "
            "{largest}.",
            n=len(sizes),
            largest=int(sizes.max()),
        )
    )
