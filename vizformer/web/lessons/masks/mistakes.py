"""A laboratory of the lesson Masks: four ways to get masking wrong."""

import math
from collections.abc import Sequence

import numpy as np
import streamlit as st

from vizformer.analysis import masks
from vizformer.analysis.masks import Outcome, given_away, kept_by_blocked, left_over
from vizformer.components import matrix
from vizformer.explain import Masked, latex
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.masks.masked_head import causal_head, causal_on, place, record, table, tokens
from vizformer.web.link import state
from vizformer.web.widgets import attention_selector, lesson, map_words
from vizformer.web.widgets.lab import Laboratory, aside, controls, wrong_line
from vizformer.web.words import labels

lab = Laboratory("masks", "mistakes", wide=True)
MISTAKES = ("after", "zero", "half", "blind")
SEEN = 0.01  # least sum of a row that is asked about
_BLOCKED = "blocked = torch.ones(n, n, dtype=torch.bool).triu(1)\n"
CODES = {
    "after": _BLOCKED + "weights = torch.softmax(scores, dim=-1).masked_fill(blocked, 0.0)  # {wrong}",
    "zero": _BLOCKED + "weights = torch.softmax(scores.masked_fill(blocked, 0.0), dim=-1)  # {wrong}",
    "half": "blocked = torch.arange(n) > row\n"
    "weights = torch.softmax(scores.masked_fill(blocked, -math.inf), dim=-1)  # {always}",
    "blind": _BLOCKED + "blocked[row] = True\n"
    "weights = torch.softmax(scores.masked_fill(blocked, -math.inf), dim=-1).nan_to_num(0.0)",
}
"""What each mistake looks like, or the way out of it; `scores` are those of one query ("half") or of all."""


@cached
def blind_output(subject: Subject, layer: int, head: int, row: int) -> float:
    """Largest |z| that the fused call gives for a query of which every key is blocked; NaN if it gives NaN."""
    attention = record(subject, causal_on(subject), layer)
    return masks.blind_output(attention, head, causal_head(subject, layer, head).blocked, row)


@cached
def precisions(subject: Subject, layer: int, head: int, row: int) -> tuple[Outcome, ...]:
    """The results of large negative numbers in a row of scores, for every precision and way of masking."""
    masked = causal_head(subject, layer, head)
    return masks.in_every_precision(masked.scores[row], masked.blocked[row])


@lab.draws
def draw_mistakes(subject: Subject) -> None:
    attention = causal_on(subject)
    rows, keys = map_words.numbered(subject, attention), labels.texts(tokens(subject, attention)[1])
    with controls():
        mistake = lab.buttons("mistake", MISTAKES, label_visibility="collapsed")
        why = place(subject, attention)
        view = state.view()
        masked = causal_head(subject, view.layer, view.head)
        row = lab.box("query", rows, _worst(masked, mistake))
    st.html(matrix.style())
    if mistake == "after":
        lesson.ask(mistakes_question(subject, view.layer, view.head), folded=True)
    if mistake == "half":
        _precision(precisions(subject, view.layer, view.head, row))
    elif mistake == "blind":
        _blind(masked, keys, row)
        lab.say("fused", value=f"{blind_output(subject, view.layer, view.head, row):g}")
    else:
        _row_by_row(masked, keys, rows, row, mistake)
    aside(why)
    given = {"scores": masked.scores[row] if mistake == "half" else masked.scores, "n": len(rows), "row": row}
    code = CODES[mistake].format(**lab.texts("code", ("wrong", "always")))
    lesson.formula(code=code, given=given)
    lesson.ask(line(subject), folded=True)


@lab.asks("sum")
def mistakes_question(subject: Subject, *place: int) -> lesson.Number:
    """What does a row add up to that was masked after its softmax?  `place` is a layer and a head."""
    layer, head = place or attention_selector.usual_head(subject, causal_on(subject))
    masked = causal_head(subject, layer, head)
    row = _worst(masked, "after")
    given, left = (float(share(masked.scores, masked.blocked)[row]) for share in (given_away, left_over))
    query = map_words.numbered(subject, causal_on(subject))[row]
    wrong = {"one": 1, "lost": given, "less": left * left}
    said = lab.asked("sum", subject, layer, head, wrong=wrong, query=query, given=f"{given:.3f}", left=f"{left:.3f}")
    return lesson.Number(answer=left, tolerance=0.01, written="{:.3f}".format, **said)


@lab.asks("line")
def line(subject: Subject) -> lesson.Choice:
    return wrong_line(lab, "after")


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
    scores, blocked, after = masked.scores, masked.blocked, mistake == "after"
    wrong = (masks.masked_after if after else masks.zeroed)(scores, blocked)
    name = lab.text(f"mistake.{mistake}")
    lines = [scores[row], masked.weights[row], wrong[row]]
    sums = ["", *(matrix.number(float(line.sum()), 4) for line in lines[1:])]
    cells = [[*(matrix.number(value, 3) for value in line), total] for line, total in zip(lines, sums, strict=True)]
    hatched = np.tile([*blocked[row], False], (3, 1))
    titles = [lab.text("score"), lab.text("right"), name]
    st.html(table(lab.text("row", query=row), [*keys, "Σ"], titles, cells, hatched))
    shares = (left_over if after else kept_by_blocked)(scores, blocked)
    amounts = {name: shares}
    if after:
        amounts[lab.text("missing")] = given_away(scores, blocked)
    numbers = [[matrix.number(value, 4) for value in values.tolist()] for values in amounts.values()]
    st.html(table(lab.text(f"sums.{mistake}"), rows, list(amounts), numbers))
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
    columns = list(dict.fromkeys(one.precision for one in outcomes))
    ways = list(dict.fromkeys((one.how, one.value) for one in outcomes))
    found = {(one.how, one.value, one.precision): one for one in outcomes}
    for weight in ("blocked_weight", "blind_weight"):
        cells = [[_outcome(found[(*way, column)], weight) for column in columns] for way in ways]
        st.html(table(lab.text(weight), columns, [_way(*way) for way in ways], cells))
    stored = next(one for one in outcomes if one.value == -1e9 and one.precision == "bfloat16").stored
    lab.note("stored", stored=f"{stored:.0f}".replace("-", "−"))


def _way(how: str, value: float | None) -> str:
    number = "finfo.min" if value is None else "−∞" if math.isinf(value) else "−10⁹" if value == -1e9 else "−10⁴"
    return lab.text("fill" if how == "fill" else "add", number=number)


def _outcome(outcome: Outcome, weight: str) -> str:
    return lab.text("refused") if outcome.refused else matrix.number(getattr(outcome, weight), 3)


def _blind(masked: Masked, keys: list[str], row: int) -> None:
    """The query's row blocked as a whole: 0 / 0, what it does to the next layer, and the way out."""
    weights = masks.blind_row(masked.scores, masked.blocked, row)
    cells = [["−∞"] * len(keys), [matrix.number(value, 3) for value in weights[row]]]
    st.html(table(lab.text("blocked", query=row), keys, [lab.text("score"), lab.text("exp")], cells))
    st.latex(r"\frac{e^{-\infty}}{\sum_k e^{-\infty}} = \frac{0}{0} = \mathrm{NaN}")
    lab.say("poisoned", hit=int(masks.poisoned(masked.weights, row).sum()), n=len(keys))
