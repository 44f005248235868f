"""An exercise: heads joined without being transposed."""

import streamlit as st

from vizformer.components import table
from vizformer.components.table import Row
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.errors import computations, exercise
from vizformer.web.widgets import lesson
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words import labels
from vizformer.web.words.i18n import _

SHOWN = 8  # rows and blocks of the table


@laboratory
def join(subject: Subject) -> None:
    """The joined heads of the first layer, and whose numbers stand where."""
    found = exercise.find(join_question(), computations.join_given(subject))
    if not found:
        return
    contrast = computations.join(subject)
    exercise.proof(contrast)
    tokens = labels.texts(subject.tokens)
    exercise.side_by_side(contrast, rows=tokens)
    n_heads = subject.config.n_heads
    rows = [
        Row((f"{row} · {tokens[row]}", *(f"{head} · {tokens[token]}" for head, token in blocks[:SHOWN])))
        for row, blocks in enumerate(computations.joined_from(n_heads, len(tokens))[:SHOWN])
    ]
    st.html(table.style())
    columns = (_("row"), *(_("block {n}", n=block) for block in range(min(n_heads, SHOWN))))
    st.html(
        table.to_html(
            columns,
            rows,
            caption=_("With the wrong line: which head and which token the blocks of a row come from"),
        )
    )


def join_question() -> lesson.Choice:
    """The exercise: which line is wrong?"""
    return exercise.question(
        "join",
        _(
            "z holds a matrix for every head; each token's heads are to be written side by side. The shape is right. Which "
            "line is wrong?"
        ),
        _(
            "z is [heads, tokens, d_k]. reshape reads the memory in that order, head after head, and cuts it into rows: "
            "a row then holds several tokens of one head in place of one token of all heads. transpose(0, 1) puts the "
            "token first."
        ),
    )
