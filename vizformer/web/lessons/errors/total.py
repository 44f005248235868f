"""An exercise: a softmax whose weights sum to 1.2."""

import streamlit as st

from vizformer.components import table
from vizformer.components.table import Row
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import sitemap
from vizformer.web.lessons.errors import computations, exercise, place
from vizformer.web.widgets import lesson
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words.i18n import _


@laboratory
def total(subject: Subject) -> None:
    """The calculation by hand that is copied, and what the rows of the reader's sentence sum to."""
    contrast = computations.total()
    lesson.ask(weight_question())
    found = exercise.find(total_question(), computations.by_hand_given())
    if not found:
        return
    exercise.proof(contrast)
    st.html(table.style())
    columns = ("", *(_("key {n}", n=n) for n in range(len(contrast.right))), "Σ", _("output"))
    rows = []
    for name, corrected in ((_("right"), True), (_("wrong"), False)):
        names = computations.by_hand("total", corrected=corrected).names
        weights = (f"{float(weight):.4f}" for weight in names["weights"])
        rows.append(Row((name, *weights, f"{float(names['total']):.4f}", f"{float(names['output']):.4f}")))
    st.html(table.to_html(columns, rows))
    st.page_link(sitemap.PAPER.file, label=_("The same example with numbers to be changed: Attention on paper"))
    st.markdown(_("**Your sentence**"))
    kind = place.reads(subject)
    layer, head = place.head(subject, kind)
    place.boxes(subject, kind)
    sums = computations.row_sums(subject, kind, layer, head)
    st.text(
        _(
            "The weights of this head sum to 1 in every row, but for {off}. Printed with one digit each they seem to sum "
            "to {least} at least and {most} at most.",
            off=f"{sums.off:.1g}",
            least=f"{sums.least:.1f}",
            most=f"{sums.most:.1f}",
        )
    )


def total_question() -> lesson.Choice:
    """The exercise: which line is wrong?"""
    return exercise.question(
        "total",
        _("The same calculation as it is printed in many places. The total at the end is 1.2. Which line is wrong?"),
        _(
            "The weights were written down and not computed: for these scores no softmax gives them, with the root or "
            "without it. A sum of weights that is not 1 always means that a denominator does not belong to its numerators."
        ),
    )


def weight_question() -> lesson.Number:
    """Which weight does a softmax give?"""
    return lesson.Number(
        "errors",
        "weight",
        _(
            "One query and four keys: the scores are 0.71, 0, 0.71 and 0; e^0.71 = 2.03 and e^0 = 1. Which weight does a "
            "softmax give to the first key?"
        ),
        float(computations.total().right[0]),
        _("2.03 / (2.03 + 1 + 2.03 + 1) = 0.33. The four weights are 0.33, 0.17, 0.33 and 0.17."),
        tolerance=0.01,
        written="{:.2f}".format,
    )
