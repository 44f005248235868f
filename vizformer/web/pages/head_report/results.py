"""A finished report: all heads in one picture, one of them, and a table of all."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.analysis.corpus_heads import Corpus, HeadReport, KindReport
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link import state
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.pages.head_report import one_head
from vizformer.web.pages.head_report.circuits import draw_circuits
from vizformer.web.turns import in_turn
from vizformer.web.widgets import attention_selector, chart, laboratories, lesson, map_words
from vizformer.web.widgets.choices import BESIDE, box, kind_of_attention, line
from vizformer.web.widgets.lab import aside
from vizformer.web.widgets.laboratories import laboratory
from vizformer.web.words.errors import guarded
from vizformer.web.words.i18n import _, show_note, translate

MOST_ROWS = 12  # of the table before it scrolls


@laboratory
def draw_results(model: ModelRef, corpus: Corpus, report: HeadReport) -> None:
    """Everything that is shown of a report; what is clicked in it draws nothing else."""
    with line():
        found = report.kinds[kind_of_attention(list(report.kinds))]
        titles = {name: one_head.title(name) for name in one_head.TITLES if np.isfinite(found.mean[name]).any()}
        measure = box(_("Measure"), "headreport.measure", titles, width=320)
        axes = chosen_axes(titles, measure)
    state.fit(layer=found.shape[0])
    state.fit(head=found.layer_heads[state.view().layer][0])
    open_on_a_head(model, found, measure)
    left, beside = st.columns(BESIDE, gap="medium")
    with left:
        picture(found, measure, axes, (state.view().layer, state.view().head))
        aside(open_on_a_head(model, found, measure))  # nothing, where a click has just chosen
    place = state.view().layer, state.view().head
    with beside:
        st.caption(one_head.meaning(measure))
        slot = one_head.in_words(report, found, measure, place)
        if found.kind == next(iter(report.kinds)):
            map_words.say_pronoun(Subject(model, state.view().text, state.view().target))
    one_head.on_a_text(model, corpus, found, measure, place)
    one_head.over_the_texts(found, place)
    table(found, measure)
    one_head.to_logits(slot, model, corpus, found.kind, place)
    if report.texts < report.given:
        show_note("{n} of {given} texts could be read by this model.", n=f"{report.texts:,}", given=f"{report.given:,}")
    if model.source == "bundled" and model.name == one_head.BY_HAND:
        with st.expander(_("The purpose of each weight of this model")):
            for message in one_head.WHY:
                st.text(translate(message))
    with laboratories.folded(_("Its queries, keys, values and outputs"), key="head_report.vectors") as is_open:
        if is_open:
            one_head.vectors(model, corpus, found, measure, place)
    with laboratories.folded(_("Circuits from the weights"), key="head_report.circuits") as is_open:
        if is_open:
            guarded()(draw_circuits)(model, found.kind, place)
    st.download_button(
        _("All numbers as a table (CSV)"),
        data=in_turn(lambda: report.csv().encode()),
        file_name=f"heads-{report.model}.csv",
        mime="text/csv",
        on_click="ignore",
        key="head_report.csv",
    )


def open_on_a_head(model: ModelRef, found: KindReport, measure: str) -> str:
    """Shows the head of which the measure is largest, where nobody has chosen one; why, in a sentence.

    Of a model that the reader opened it is the head that the page Attention begins with.
    """
    if why := attention_selector.open_elsewhere(model, found.kind):
        return why
    chosen_before = lesson.value("headreport.first", False)  # of a link from before: head 0 of layer 0 was chosen
    if chosen_before or not attention_selector.open_on_the_largest(found.mean[measure]):
        return ""
    layer, head = place = state.view().layer, state.view().head
    return _(
        "Shown: layer {layer}, head {head}. Of all heads its measure “{measure}” is largest ({value}).",
        layer=layer,
        head=head,
        measure=one_head.title(measure),
        value=one_head.number(measure, float(found.mean[measure][place])),
    )


def chosen_axes(titles: Mapping[str, str], measure: str) -> tuple[str, str]:
    """The measures on the x axis and in the colour of the scatter plot; `measure` is on the y axis."""
    names = {one_head.LAYER: _("Layer"), **titles}
    usual = next((name for name in ("entropy", "effective_rank") if name in names and name != measure), one_head.LAYER)
    with st.popover(_("Axes and colour")):
        across = box(_("Across"), "headreport.across", names, usual)
        colour = box(_("Colour"), "headreport.colour", names)
        show_note("The measure is the vertical axis.")
    return across, colour


def picture(found: KindReport, measure: str, axes: tuple[str, str], place: tuple[int, int]) -> None:
    """All heads as points; a click shows one."""
    chart.show(
        figures.head_scatter(
            one_head.axis(found, axes[0]), one_head.axis(found, measure), one_head.axis(found, axes[1]), chosen=place
        ),
        key="head_report.scatter",
        chooses=lambda at: state.update(layer=at // found.shape[1], head=at % found.shape[1]),
    )


def table(found: KindReport, measure: str) -> None:
    """Every head, sorted by the measure; a click on a row chooses it."""
    places = attention_selector.in_order(found.mean[measure])
    attention_selector.table(columns(found, measure, places), places, key="head_report", most_rows=MOST_ROWS)
    show_note("A click in the first column of a row shows that head; a click on a title sorts.")


def columns(found: KindReport, measure: str, places: list[tuple[int, int]]) -> dict[str, Any]:
    """The table by its columns: the chosen measure first, with its spread over the texts."""
    table: dict[str, Any] = {_("Layer"): [place[0] for place in places], _("Head"): [place[1] for place in places]}
    if found.grouped:
        table[_("Group")] = [found.group(*place) for place in places]
    for name in [measure, *(name for name in one_head.TITLES if name != measure)]:
        values = found.mean[name]
        if not np.isfinite(values).any():
            continue
        table[one_head.title(name)] = [_rounded(values[place]) for place in places]
        if name == measure and np.isfinite(found.spread[name]).any():
            table[_("± over texts")] = [_rounded(found.spread[name][place]) for place in places]
    if found.sign.any():
        table[_("Sign of OV")] = [
            translate(one_head.SIGNS[int(found.sign[place])]) if found.sign[place] else None for place in places
        ]
    return table


def _rounded(value: float) -> float | None:
    return round(float(value), 3) if np.isfinite(value) else None
