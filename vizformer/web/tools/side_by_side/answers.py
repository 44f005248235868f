"""What both runs predict at one position, side by side."""

import streamlit as st

from vizformer.components import table
from vizformer.components.table import Number, Row
from vizformer.web.catalogue import model_cache, subject_cache
from vizformer.web.link import state
from vizformer.web.tools.side_by_side import computations
from vizformer.web.tools.side_by_side.pair import Pair
from vizformer.web.widgets import position_choice
from vizformer.web.widgets.answer_question import ask_why
from vizformer.web.words import labels
from vizformer.web.words.i18n import _, show_info, show_note, show_text


def draw_answers(pair: Pair) -> None:
    """The most probable tokens of either run, with the probability that both give them."""
    st.subheader(_("What they predict"), anchor=False)
    if not all(model_cache.predicts(one.model) for one in (pair.first, pair.second)):
        show_info("A model whose files contain no output layer makes no predictions to compare.")
        return
    rows = chosen_rows(pair)
    found = computations.answers(pair, *rows)
    first, second = pair.names
    listed = [
        Row(
            name,
            Number(one.first, labels.percent(one.first)),
            Number(one.second, labels.percent(one.second)),
            Number(one.second - one.first, _points(one.second - one.first)),
        )
        for name, one in zip(labels.told_apart([one.token for one in found.tokens]), found.tokens, strict=True)
    ]
    columns = (
        _("token"),
        _("first: {name}", name=first),
        _("second: {name}", name=second),
        _("second − first, percentage points"),
    )
    st.html(table.style() + table.to_html(columns, listed, caption=_("The most probable tokens of either")))
    best = subject_cache.predictions(pair.first, rows[0])[0].token.text
    ask_why(best, rows[0], key="side_by_side.why")
    show_text(
        "The two distributions are {bits} bits apart (Jensen-Shannon divergence: 0 the same, 1 nothing in common).",
        bits=f"{found.divergence:.4f}",
    )


def chosen_rows(pair: Pair) -> tuple[int, int]:
    """The position in both runs: the one that was chosen, where the texts are equally long, else the last ones."""
    stack = position_choice.stack(pair.first)
    if len(pair.first.trace.tokens[stack]) == len(pair.second.trace.tokens[stack]):
        position_choice.choose(pair.first, key="side_by_side.position", usual=usual_row(pair))
    else:
        show_note("The texts are not equally long: these are the predictions at their last tokens.")
    return chosen_row(pair)


def chosen_row(pair: Pair) -> tuple[int, int]:
    """The position in both runs, without drawing anything."""
    stack = position_choice.stack(pair.first)
    first, second = (len(one.trace.tokens[stack]) for one in (pair.first, pair.second))
    if first != second:
        return first - 1, second - 1
    chosen = state.view().position
    row = usual_row(pair) if chosen is None else min(chosen, first - 1)
    return row, row


def usual_row(pair: Pair) -> int:
    """After the text, at a [MASK]; else where the two first find different tokens most probable."""
    asked = position_choice.asked_position(pair.first)
    if asked is not None:
        return asked
    differing = computations.differing_rows(pair)
    return differing[0] if differing else position_choice.unsure_position(pair.first)


def _points(share: float) -> str:
    return f"{100 * share:+.1f}".replace("-", "−")
