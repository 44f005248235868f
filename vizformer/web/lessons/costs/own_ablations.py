"""Table 3 once more, at about a tenth of the widths: every row really trained, with the paper's numbers beside it."""

import math

import streamlit as st

from vizformer import figures
from vizformer.analysis.costs.own_ablations import OwnRow, loss_changes
from vizformer.components import table
from vizformer.components.table import Number, Row
from vizformer.web.lessons.costs import computations, wording
from vizformer.web.widgets import chart, lesson
from vizformer.web.words.i18n import _

ASKED = (("h", 1), ("N", 2), ("d_model", 256), ("d_ff", 1024))
"""The changes of the question, as the paper names them."""


def own_ablations() -> None:
    """The table of our own trainings, the changes of the loss as a picture, and a question."""
    rows, notes = computations.own_rows(), computations.ablation_notes()
    st.markdown("#### " + _("The same changes at a tenth of the widths, trained here"))
    st.markdown(
        _(
            "The small translator has d_model 64, d_ff 256, 4 heads and 2 + 2 layers. Every row changes it by the same "
            "factor as in the paper, and was trained from scratch {seeds} times, {updates} updates each, on "
            "{pairs} Chinese - English pairs. Perplexity and BLEU are those of pairs that no training has seen.",
            seeds=len(notes["recipe"]["seeds"]),
            updates=f"{notes['recipe']['updates']:,}",
            pairs=f"{notes['pairs']['train']:,}",
        )
    )
    lesson.ask(worst_question())
    base = rows[0]
    st.html(
        table.to_html(
            (
                _("group"),
                _("what differs"),
                _("perplexity"),
                "BLEU",
                _("between seeds"),
                _("against base"),
                _("in the paper"),
                _("parameters"),
            ),
            [_row(row, base) for row in rows],
            caption=_("Our own Table 3: held-out pairs, mean of the seeds"),
        )
    )
    changes = loss_changes(rows)
    chart.show(
        figures.changes(
            [_name(row) for row in rows[1:]],
            {_("here"): [own for own, _paper in changes], _("in the paper"): [paper for _own, paper in changes]},
            axis_title=_("change of the loss against the base model, nats per token (left: better)"),
            hover=_("{name}: {change} nats per token"),
            title=_("What each change does to the loss, here and in the paper"),
        ),
        key="costs.changes",
    )
    st.caption(
        _(
            "Perplexities of different vocabularies cannot be compared, what a change does to them can. These trainings are "
            "stopped early, the paper's are not: rows such as dropout and layers say the opposite of the paper and are no "
            "evidence against it. A difference smaller than the one between two seeds is none. Rows B have no counterpart "
            "here: keys and values have one width in this model."
        )
    )


def _row(row: OwnRow, base: OwnRow) -> Row:
    of_paper = row.paper.bleu - base.paper.bleu
    return Row(
        (
            wording.group(row.paper.group),
            wording.changed(row.changed) or "N 2, d_model 64, d_ff 256, h 4",
            Number(row.perplexity, f"{row.perplexity:.2f}"),
            Number(row.bleu, f"{row.bleu:.1f}"),
            Number(row.bleu_range, f"{row.bleu_range:.1f}"),
            "" if row is base else Number(row.bleu - base.bleu, wording.against(row.bleu - base.bleu)),
            "" if row is base else Number(of_paper, wording.against(of_paper)),
            Number(row.parameters, f"{row.parameters:,}"),
        ),
        "marked" if row is base else "",
    )


def _name(row: OwnRow) -> str:
    """The change with the paper's numbers and ours: layers 2 (here 1)."""
    first, own = row.paper.changed[0], row.changed[0]
    if isinstance(first[1], str):
        return wording.changed([first])
    return _("{paper} (here {own})", paper=wording.changed([first]), own=f"{own[1]:g}")


def worst_question() -> lesson.Choice | None:
    """Which of four changes makes our own model worst; None where not all of them were trained."""
    rows = computations.own_rows()
    asked = [row for name, value in ASKED for row in rows if (name, value) in row.paper.changed]
    if len(asked) < len(ASKED):
        return None
    changes = [row.loss - rows[0].loss for row in asked]
    worst = max(range(len(asked)), key=changes.__getitem__)
    said = ", ".join(
        _(
            "{name}: {factor} times the perplexity",
            name=wording.changed([row.changed[0]]),
            factor=f"{math.exp(change):.2f}",
        )
        for row, change in zip(asked, changes, strict=True)
    )
    return lesson.Choice(
        "costs",
        "own",
        _("Which of these changes makes the small translator worst?"),
        [_name(row) for row in asked],
        worst,
        said + ".",
    )
