"""The lower half of the laboratory Smoothing: two bundled trainings, with label smoothing and without."""

from typing import Any

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.components import table
from vizformer.components.table import Number, Row
from vizformer.web.lessons.training import computations
from vizformer.web.widgets import chart, lesson
from vizformer.web.words.i18n import _

PAPER = (
    (0.0, 4.67, 25.3),
    (0.1, 4.92, 25.8),
    (0.2, 5.47, 25.7),
)  # smoothing, perplexity, BLEU: Table 3, rows D and base


def two_trainings() -> None:
    """The two bundled trainings beside the paper's."""
    notes = computations.notes("smoothing")
    st.markdown(_("**Two trainings, with and without**"))
    lesson.ask(worse_question())
    named = {0.0: _("without smoothing"), 0.1: _("ε = {eps:g}", eps=0.1)}
    marks = computations.by_smoothing()
    chart.show(
        figures.line_curves(
            np.array(marks[0.0].steps),
            {named[eps]: one.perplexities for eps, one in marks.items()},
            place_title=_("update"),
            value_title=_("perplexity"),
            hover=_("{name}, update {place}: {value}"),
            digits=2,
            height=340,
            title=_("Perplexity on held-out sentences, mean of {n} seeds", n=len(notes["recipe"]["seeds"])),
        ).update_traces(mode="lines+markers"),
        key="training.perplexity",
    )
    rows = [
        Row(
            (
                named[eps],
                Number(one.perplexity, f"{one.perplexity:.2f}"),
                Number(one.sure, f"{one.sure:.1%}"),
                Number(one.right, f"{one.right:.1%}"),
                Number(one.bleu, " / ".join(f"{value:.1f}" for value in one.bleus)),
            )
        )
        for eps, one in marks.items()
    ]
    columns = (
        _("our small translators"),
        _("perplexity"),
        _("how sure: mean P of the first token"),
        _("how often it is right"),
        _("BLEU, seed by seed"),
    )
    st.html(table.to_html(columns, rows))
    head = (_("the paper, base model"), _("perplexity"), "BLEU")
    paper = [
        Row((f"ε = {eps:g}", Number(perplexity, f"{perplexity:.2f}"), Number(bleu, f"{bleu:.1f}")))
        for eps, perplexity, bleu in PAPER
    ]
    st.html(table.to_html(head, paper))
    st.caption(_verdict(notes, marks))


def worse_question() -> lesson.Choice:
    return lesson.Choice(
        "training",
        "worse",
        _("With ε = 0.1 instead of 0: what happened in the paper on its development set?"),
        [
            _("perplexity and BLEU both became better"),
            _("perplexity became worse, BLEU better"),
            _("perplexity became better, BLEU worse"),
        ],
        1,
        _(
            "Perplexity 4.67 → 4.92, BLEU 25.3 → 25.8 (Table 3). The model is taught to be less sure, and perplexity "
            "measures how sure it was of the right token; which token comes first is another question."
        ),
    )


def _verdict(notes: dict[str, Any], marks: dict[float, Any]) -> str:
    plain, smoothed = marks[0.0], marks[0.1]
    said = _(
        "{n} parameters, {updates} updates on {pairs} sentence pairs; BLEU on {test} others.",
        n=f"{notes['parameters']:,}",
        updates=f"{notes['recipe']['updates']:,}",
        pairs=f"{notes['pairs']['train']:,}",
        test=notes["pairs"]["test"],
    )
    wins = sum(b > a for a, b in zip(plain.bleus, smoothed.bleus, strict=True))
    measured = _(
        "With smoothing BLEU is higher for {wins} of {n} seeds. On so few sentences a difference of less than one point "
        "can be chance.",
        wins=wins,
        n=len(plain.bleus),
    )
    command = "`python -m recipes.smoothing cmn.txt smoothing.json`"
    again = _("Measured once and bundled; in a checkout this makes them again: {command}", command=command)
    return f"{said} {measured} {again}"
