"""An exercise: a table of parameters whose parts do not sum to its total."""

import streamlit as st

from vizformer.components import table
from vizformer.components.table import Number, Row
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import sitemap
from vizformer.web.lessons.errors import computations, exercise
from vizformer.web.widgets import lesson
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words.i18n import _


@laboratory
def count(subject: Subject) -> None:
    """The paper's base model, counted by parts and on a model of these sizes."""
    copied = computations.by_hand("count", corrected=False)
    found = exercise.find(count_question(), {})
    if not found:
        return
    paper = computations.paper_count()
    names = copied.names
    parts = (
        (_("encoder"), names["encoder"], paper.encoder),
        (_("decoder"), names["decoder"], paper.decoder),
        (_("embedding"), names["embedding"], paper.embedding),
    )
    rows = [
        Row((name, Number(wrong, f"{wrong:,}"), Number(right, f"{right:,}")), "marked" if wrong != right else "")
        for name, wrong, right in parts
    ]
    summed = sum(wrong for _name, wrong, _right in parts)
    rows.append(Row((_("sum"), Number(summed, f"{summed:,}"), Number(paper.total, f"{paper.total:,}")), "sum"))
    st.html(table.style())
    st.html(table.to_html(("", _("as it was copied"), _("right")), rows))
    same = paper.total == paper.model
    (st.success if same else st.error)(
        _("A model of these sizes, built and counted, has {n} parameters.", n=f"{paper.model:,}")
    )
    st.page_link(sitemap.BLOCK.file, query_params={"part": "count"}, label=_("Counted part by part: lesson 7"))


def count_question() -> lesson.Choice:
    """The exercise: which line is wrong?"""
    return exercise.question(
        "count",
        _(
            "The parameters of the paper's base model, as they are copied. The last line stops with “{error}”. Which line "
            "is wrong?",
            error=computations.by_hand("count", corrected=False).error,
        ),
        _(
            "A decoder layer has two attentions of 1,050,624, a feed-forward of 2,099,712 and three norms of 1,024: "
            "4,204,032. Six of them have 25,224,192 parameters. No sum of such parts gives 24.5 M: add up what you copy."
        ),
    )
