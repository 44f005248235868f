"""A laboratory of the lesson Masks: four ways to get masking wrong."""

import math
from collections.abc import Sequence

import numpy as np
import streamlit as st

from vizformer.analysis.masks.mistakes import (
    Outcome,
    blind_row,
    given_away,
    kept_by_blocked,
    left_over,
    masked_after,
    poisoned,
    zeroed,
)
from vizformer.components import matrix
from vizformer.explain import Masked, latex
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.masks import boxes, computations, snippets, wording
from vizformer.web.lessons.masks.which_attention import causal_on, tokens
from vizformer.web.link import state
from vizformer.web.widgets import lesson, row_names
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words import labels
from vizformer.web.words.i18n import _

MISTAKES = ("after", "zero", "half", "blind")
SEEN = 0.01  # least sum of a row that is asked about


@laboratory
def four_mistakes(subject: Subject) -> None:
    """One mistake at a time, with the scores of a head and a query of choice."""
    names = {
        "after": _("Mask after softmax"),
        "zero": _("0 instead of −∞"),
        "half": _("−10⁹ in half precision"),
        "blind": _("A row with nothing left"),
    }
    mistake = st.segmented_control(
        _("Mistake"),
        MISTAKES,
        format_func=names.__getitem__,
        required=True,
        label_visibility="collapsed",
        **lesson.setting("masks.mistake", "after", MISTAKES),
    )
    attention = causal_on(subject)
    (query,) = boxes.place(subject, attention, 2)
    view = state.view()
    masked = computations.causal_head(subject, view.layer, view.head)
    if mistake == "after":
        lesson.ask(sum_question(subject, masked, f"{subject} {view.layer} {view.head}"))
    rows = row_names.numbered(subject, attention)
    row = query.selectbox(
        _("Query"),
        range(len(rows)),
        format_func=rows.__getitem__,
        **lesson.setting("masks.query", _worst(masked, mistake), range(len(rows))),
    )
    st.html(matrix.style())
    keys = labels.texts(tokens(subject, attention)[1])
    if mistake == "half":
        _precision(computations.precisions(subject, view.layer, view.head, row))
    elif mistake == "blind":
        _blind(masked, keys, row)
    else:
        _row_by_row(masked, keys, rows, row, mistake)
    given = {"scores": masked.scores[row] if mistake == "half" else masked.scores, "n": len(rows), "row": row}
    st.code(lesson.pasteable(snippets.mistake_code(mistake), given), language="python", wrap_lines=True)
    if mistake == "blind":
        st.text(
            _(
                "F.scaled_dot_product_attention on this machine gives such a row z with |z| up to {value}.",
                value=f"{computations.blind_output(subject, view.layer, view.head, row):g}",
            )
        )


def sum_question(subject: Subject, masked: Masked, about: str = "") -> lesson.Number:
    """What does a row add up to that was masked after its softmax?"""
    row = _worst(masked, "after")
    given, left = (
        float(given_away(masked.scores, masked.blocked)[row]),
        float(left_over(masked.scores, masked.blocked)[row]),
    )
    return lesson.Number(
        "masks",
        "sum",
        _(
            "Softmax over all keys: query “{query}” gives the keys of the future {given} together. Only then are their "
            "weights set to 0. What do the weights of this row add up to?",
            query=row_names.numbered(subject, causal_on(subject))[row],
            given=f"{given:.3f}",
        ),
        left,
        _(
            "1 − {given} = {left}: what went to the blocked keys is lost. With −∞ before the softmax these keys are missing "
            "from the denominator too, and the row adds up to 1.",
            given=f"{given:.3f}",
            left=f"{left:.3f}",
        ),
        tolerance=0.01,
        written="{:.3f}".format,
        about=about,
    )


def _worst(masked: Masked, mistake: str) -> int:
    """The query for which a mistake does the most harm, of those that keep something that three digits show."""
    if mistake == "after":
        seen = left_over(masked.scores, masked.blocked) >= SEEN
        return int((given_away(masked.scores, masked.blocked) + seen).argmax())
    if mistake == "zero":
        return int(kept_by_blocked(masked.scores, masked.blocked).argmax())
    return (len(masked.scores) - 1) // 2


def _row_by_row(masked: Masked, keys: list[str], rows: list[str], row: int, mistake: str) -> None:
    """The weights of one query, right and wrong, and what every row's mistake amounts to."""
    blocked = masked.blocked
    after = mistake == "after"
    wrong = masked_after(masked.scores, blocked) if after else zeroed(masked.scores, blocked)
    name = _("mask after softmax") if after else _("0 instead of −∞")
    lines = [masked.scores[row], masked.weights[row], wrong[row]]
    cells = [[matrix.number(value, 3) for value in line] for line in lines]
    for line, numbers in zip(lines, cells, strict=True):
        numbers.append("" if line is lines[0] else matrix.number(float(line.sum()), 4))
    hatched = np.zeros((3, len(keys) + 1), dtype=bool)
    hatched[:, : len(keys)] = blocked[row]
    st.html(wording.table(_("Query {query}", query=row), [*keys, "Σ"], [_("score"), _("right"), name], cells, hatched))
    shares = left_over(masked.scores, blocked) if after else kept_by_blocked(masked.scores, blocked)
    title = _("What each row sums to") if after else _("What the blocked cells of each row keep")
    amounts = {name: shares}
    if after:
        amounts[_("missing: given to blocked keys")] = given_away(masked.scores, blocked)
    st.html(
        wording.table(
            title,
            rows,
            list(amounts),
            [[matrix.number(value, 4) for value in values.tolist()] for values in amounts.values()],
        )
    )
    if after:
        st.latex(
            r"\sum_j \frac{e^{S_{ij}}}{\sum_k e^{S_{ik}}}\,[j \le i] \;=\; "
            rf"{latex.number(shares[row])} \quad (i = {row})"
        )
    else:
        st.latex(
            rf"e^0 = 1: \qquad \frac{{{int(blocked[row].sum())} \cdot e^0}}{{\sum_j e^{{S'_{{{row}j}}}}}}"
            rf" \;=\; {latex.number(shares[row])}"
        )


def _precision(outcomes: Sequence[Outcome]) -> None:
    """What a big negative number becomes in each precision, and the weight that blocked cells get with it."""
    precisions = list(dict.fromkeys(o.precision for o in outcomes))
    ways = list(dict.fromkeys((o.how, o.value) for o in outcomes))
    found = {(o.how, o.value, o.precision): o for o in outcomes}
    names = [_way(how, value) for how, value in ways]
    for title, weight in (
        (_("The row of the query: weight on its blocked cells"), "blocked_weight"),
        (_("A row in which everything is blocked: weight on blocked cells (right would be 0)"), "blind_weight"),
    ):
        cells = [[_outcome(found[(*way, precision)], weight) for precision in precisions] for way in ways]
        st.html(wording.table(title, precisions, names, cells))
    stored = next(o for o in outcomes if o.value == -1e9 and o.precision == "bfloat16").stored
    st.caption(
        _(
            "float16 ends at 65504: there −10⁹ cannot be stored. bfloat16 has the range of float32 and few digits: it "
            "stores {stored}.",
            stored=f"{stored:.0f}".replace("-", "−"),
        )
    )


def _way(how: str, value: float | None) -> str:
    number = "finfo.min" if value is None else "−∞" if math.isinf(value) else "−10⁹" if value == -1e9 else "−10⁴"
    return _("filled with {number}", number=number) if how == "fill" else _("{number} added", number=number)


def _outcome(outcome: Outcome, weight: str) -> str:
    return _("refused") if outcome.refused else matrix.number(getattr(outcome, weight), 3)


def _blind(masked: Masked, keys: list[str], row: int) -> None:
    """The query's row blocked as a whole: 0 / 0, what it does to the next layer, and the way out."""
    weights = blind_row(masked.scores, masked.blocked, row)
    cells = [["−∞"] * len(keys), [matrix.number(value, 3) for value in weights[row]]]
    st.html(wording.table(_("Query {query}, all keys blocked", query=row), keys, [_("score"), _("exp / sum")], cells))
    st.latex(r"\frac{e^{-\infty}}{\sum_k e^{-\infty}} = \frac{0}{0} = \mathrm{NaN}")
    hit = int(poisoned(masked.weights, row).sum())
    st.text(
        _(
            "In the next layer this position's value is NaN. Weight 0 does not help: 0 · NaN = NaN. Rows that are NaN "
            "then: {hit} of {n}.",
            hit=hit,
            n=len(keys),
        )
    )
