"""An exercise: dropout kept as a number, and then called."""

import streamlit as st

from vizformer.components import table
from vizformer.components.table import Number, Row
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.errors import computations, exercise
from vizformer.web.widgets import lesson
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words.i18n import _


@laboratory
def dropout(subject: Subject) -> None:
    """What Python says, and two passes of the corrected layer over the reader's sentence."""
    found = exercise.find(dropout_question(subject), computations.dropout_given(subject))
    if not found:
        return
    lengths = computations.lengths(subject)
    names = {"first": _("training, pass {n}", n=1), "second": _("training, pass {n}", n=2), "used": _("in use")}
    st.html(table.style())
    rows = [
        Row((_("as it was copied"), computations.dropout(subject, False).error)),
        *(Row((names[name], Number(value, f"{value:.4f}"))) for name, value in lengths.items()),
    ]
    st.html(table.to_html(("", _("length of the output's first row, for your sentence")), rows))
    st.caption(
        _(
            "The rows are those that enter your model's first layer; the weights of the layer are random. The corrected "
            "layer gives another result in each pass of training, and one and the same in use."
        )
    )


def dropout_question(subject: Subject) -> lesson.Choice:
    """The exercise: which line is wrong?"""
    return exercise.question(
        "dropout",
        _(
            "Python stops in line 8: “{error}”. In which line was the mistake made?",
            error=computations.dropout(subject, False).error,
        ),
        _(
            "self.dropout is the number 0.1, and a number cannot be called. Python names the line that calls it; the line "
            "that keeps it is wrong. nn.Dropout(dropout) is a module: it can be called, and train() and eval() switch it."
        ),
    )
