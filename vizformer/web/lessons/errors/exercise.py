"""What every exercise has: the program with its wrong line to be found, and the proof once it has been."""

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from vizformer.analysis.own_steps.error_contrasts import Contrast
from vizformer.components import matrix
from vizformer.web.lessons.errors import computations
from vizformer.web.widgets import lesson
from vizformer.web.words.errors import plain
from vizformer.web.words.i18n import _, translate

SHOWN = 6  # rows and columns of two tables beside each other


def question(name: str, text: str, why: str) -> lesson.Choice:
    """Which line of a program is wrong?

    Args:
        name: of the exercise and of its question.
        text: what the program shall do, and what happens instead.
        why: the reason, in the reader's language.
    """
    found = computations.exercise(name)
    return lesson.Choice("errors", name, text, found.lines, found.wrong, why, code=True)


def find(asked: lesson.Choice, given: Mapping[str, Any]) -> bool:
    """The program line by line, one of which is to be chosen; whether it has been, so that the proof can follow.

    Args:
        asked: the question.
        given: the numbers that the program reads.
    """
    lesson.ask(asked, here=True)
    found = computations.exercise(asked.name)
    if not lesson.is_answered("errors", asked.name):
        with st.expander(_("The same to be pasted and run")):
            _paste(found.program(corrected=False), given)
        return False
    st.markdown(_("**Line {n} has to say**", n=found.wrong + 1))
    st.code(found.right.strip(), language="python", wrap_lines=True)
    with st.expander(_("The corrected program, to be pasted and run")):
        _paste(found.program(corrected=True), given)
    return True


def _paste(code: str, given: Mapping[str, Any]) -> None:
    st.code(lesson.pasteable(code, given), language="python", wrap_lines=True)


def proof(found: Contrast) -> None:
    """How far each of the two is from what the model computed."""
    said = _(
        "Compared with {anchor}: the right line is off by at most {right}, the wrong one by up to {wrong}.",
        anchor=translate(found.proof.anchor, plain),
        right=f"{found.proof.difference:.1g}",
        wrong=f"{found.off:.3g}",
    )
    (st.success if found.proof.holds else st.error)(said)


def side_by_side(
    found: Contrast,
    *,
    rows: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
) -> None:
    """Both results as tables."""
    st.html(matrix.style())
    left, right = st.columns(2)
    for place, name, values in ((left, _("right"), found.right), (right, _("wrong"), found.wrong)):
        place.html(matrix.to_html(values, rows=rows, columns=columns, caption=name, digits=3, shown=SHOWN))


def writes(right: str, wrong: str) -> None:
    """What a translator writes from both, as plain text: it may contain what was typed."""
    st.markdown(
        _("With the right line the model writes: “{text}”", text=plain(right))
        + "\n\n"
        + _("With the wrong line: “{text}”", text=plain(wrong))
    )
