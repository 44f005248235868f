"""The laboratory One wrong token: teacher forcing against free running."""

from itertools import zip_longest

import streamlit as st

from vizformer.analysis.decoding.teacher_forcing import LONGEST
from vizformer.components import table
from vizformer.components.table import Number, Row
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.decoding import computations
from vizformer.web.lessons.decoding.other_model import writes
from vizformer.web.widgets import lesson
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words import counts
from vizformer.web.words.i18n import _

MOST_WRONG = 3  # wrong tokens to choose from


@laboratory
def free_running(subject: Subject) -> None:
    """The same error under teacher forcing, where it stays alone, and running free, where the rest follows it."""
    if not writes(subject):
        return
    st.html(table.style())
    rows = computations.right_rows(subject)
    last = len(rows) - 1
    step = st.slider(
        _("Token that goes wrong"),
        0,
        max(last, 1),
        **lesson.setting("decoding.step", min(1, last), range(last + 1)),
    )
    rank = st.slider(
        _("Which of the wrong ones, by probability"),
        1,
        MOST_WRONG,
        **lesson.setting("decoding.rank", 1, range(1, MOST_WRONG + 1)),
    )
    found = computations.one_error(subject, min(step, last), rank - 1)
    lesson.ask(forcing_question(step, last - found.step, f"{subject}{step}"))
    columns = (
        _("token"),
        _("right text"),
        _("forced: reads"),
        _("forced: says"),
        _("free: reads"),
        _("free: says"),
    )
    shown = []
    for i, (row, own) in enumerate(zip_longest(rows, found.free)):
        said = "" if row is None else (found.wrong.text if i == found.step else row.best[0].token.text)
        read = found.free[i - 1].text if 0 < i <= len(found.free) else rows[0].read.text if i == 0 else ""
        same = row is not None and own is not None and row.wanted.id == own.id
        shown.append(
            Row(
                (
                    Number(i, str(i)),
                    "" if row is None else row.wanted.text,
                    "" if row is None else row.read.text,
                    said,
                    read,
                    "" if own is None else own.text,
                ),
                "" if same else "marked",
            )
        )
    st.html(table.to_html(columns, shown))
    st.text(_("Running free, the text becomes: {text}", text=found.whole or _("(nothing)")))
    st.caption(
        _(
            "After the error at token {step} (“{wrong}”), running free goes on to differ in {changed}; under teacher "
            "forcing the next row reads the right token, and the error costs once.",
            step=found.step,
            wrong=found.wrong.text,
            changed=counts.tokens(found.changed),
        )
    )
    if len(rows) == LONGEST:
        st.caption(_("Only the first {n} tokens are compared.", n=LONGEST))
    lesson.formula(
        r"\text{forced: } P(y_t \mid y_1, \dots, y_{t-1}, x) \qquad "
        r"\text{free: } P(\hat y_t \mid \hat y_1, \dots, \hat y_{t-1}, x)",
        code="right = torch.tensor(y)            # teacher forcing: input and target are the same text\n"
        "inputs, targets = right[:-1], right[1:]",
        given={"y": [row.read.id for row in rows] + [rows[-1].wanted.id]},
    )


def forcing_question(step: int, later: int, about: str = "") -> lesson.Choice:
    """What does an error in a row change in the `later` rows?"""
    return lesson.Choice(
        "decoding",
        "forcing",
        _("In training the model says a wrong token in row {step}. How many inputs of later rows change?", step=step),
        ["0", "1", _("all {n}", n=max(later, 2))],
        0,
        _(
            "None: the inputs are the right text, whatever was said. That is why all rows can be computed at once, and why "
            "the model never meets its own errors while it learns (exposure bias)."
        ),
        about=about,
    )
