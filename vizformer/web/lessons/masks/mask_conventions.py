"""Two laboratories of the lesson Masks: one mask in four notations, and four ways to get masking wrong."""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from vizformer.components import matrix
from vizformer.web.lessons.masks import computed, wording
from vizformer.web.link import state
from vizformer.web.widgets import lesson
from vizformer.web.words import labels
from vizformer.web.words.errors import plain
from vizformer.web.words.i18n import _

if TYPE_CHECKING:
    from vizformer.analysis.mask_mistakes import Outcome
    from vizformer.analysis.masked import Masked
    from vizformer.web.catalogue.subject import Subject

Place = Callable[[], "list[st.delta_generator.DeltaGenerator]"]
"""Draws the boxes for layer and head; hands out the columns that are left beside them."""
SHOWN = 10  # rows and columns of the tables: True and False of so many fit beside each other
CODES = {
    "after": "weights = torch.softmax(scores, dim=-1).masked_fill(blocked, 0.0)  # wrong",
    "zero": "weights = torch.softmax(scores.masked_fill(blocked, 0.0), dim=-1)  # wrong",
    "half": "weights = torch.softmax(scores.masked_fill(blocked, -math.inf), dim=-1)  # right in every precision",
    "blind": "weights = torch.softmax(scores, dim=-1).nan_to_num(0.0)",
}
"""What each mistake looks like, or the way out of it; run in a test."""
MISTAKES = ("after", "zero", "half", "blind")


def listed(names: Sequence[str]) -> str:
    """Names of tokens in a sentence of Markdown."""
    return ", ".join(plain(name) for name in names[:SHOWN]) + (" …" if len(names) > SHOWN else "")


# --- four notations ---------------------------------------------------------------------------------------------------


def four_notations(subject: "Subject", place: Place) -> None:
    """The causal mask as four tables with the call each belongs to, and the weights where two are mixed up."""
    from vizformer.analysis.mask_mistakes import mixed_up, notations

    place()
    view = state.view()
    masked, tokens = computed.causal_head(subject, view.layer, view.head)
    blocked = masked.reasons > 0
    agreed = computed.conventions(subject, view.layer, view.head)
    names = labels.texts(tokens)[:SHOWN]
    shown = blocked[:SHOWN, :SHOWN]
    st.html(matrix.style())
    if len(tokens) > SHOWN:
        st.caption(_("The tables show the first {shown} of {n} tokens.", shown=SHOWN, n=len(tokens)))
    halves = [column for __ in range(2) for column in st.columns(2)]
    for half, (name, mask) in zip(halves, notations(blocked).items(), strict=True):
        cells = [[_written(value) for value in row] for row in mask[:SHOWN, :SHOWN].tolist()]
        with half.container(border=True):
            html = wording.table(wording.notation_name(name), names, names, cells, shown)
            st.html(f'<div class="vf-compact">{html}</div>')
            st.code(wording.NOTATIONS[name], language="python", wrap_lines=True)
            st.caption(
                _("z of this head agrees with the arithmetic to {difference}.", difference=f"{agreed[name]:.1g}")
            )
    if st.toggle(
        _("Hand a True = visible mask to a call that reads True = blocked"), **lesson.dial("masks.mixed", False)
    ):
        weights = mixed_up(masked.scores, blocked)
        cells = [[matrix.number(value, 2) for value in row] for row in weights[:SHOWN, :SHOWN].tolist()]
        st.html(wording.table(_("The weights then"), names, names, cells, shown))
        st.error(
            _(
                "Every query now sees the future and nothing else. Rows that are NaN, because nothing is left to see: "
                "{rows} of {n}. No call has complained.",
                rows=int(np.isnan(weights).all(axis=1).sum()),
                n=len(weights),
            )
        )


def _written(value: object) -> str:
    if isinstance(value, float):
        return "−∞" if math.isinf(value) else "0"
    return str(value)


# --- four mistakes ----------------------------------------------------------------------------------------------------


def four_mistakes(subject: "Subject", place: Place) -> None:
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
        **lesson.dial("masks.mistake", "after", MISTAKES),
    )
    (query,) = place()
    view = state.view()
    masked, tokens = computed.causal_head(subject, view.layer, view.head)
    numbered = labels.numbered(tokens)
    row = query.selectbox(
        _("Query"),
        range(len(tokens)),
        format_func=numbered.__getitem__,
        **lesson.dial("masks.query", _worst(masked, mistake), range(len(tokens))),
    )
    st.html(matrix.style())
    texts = labels.texts(tokens)
    if mistake == "half":
        _precision(computed.precisions(subject, view.layer, view.head, row))
    elif mistake == "blind":
        _blind(masked, texts, row, computed.blind_output(subject, view.layer, view.head, row))
    else:
        _row_by_row(masked, texts, row, mistake)


def _worst(masked: "Masked", mistake: str) -> int:
    """The query for which a mistake does the most harm: where it is best seen."""
    from vizformer.analysis.mask_mistakes import given_away, zeroed

    blocked = masked.reasons > 0
    if mistake == "after":
        return int(given_away(masked.scores, blocked).argmax())
    if mistake == "zero":
        return int((zeroed(masked.scores, blocked) * blocked).sum(axis=1).argmax())
    return (len(blocked) - 1) // 2


def _row_by_row(masked: "Masked", tokens: list[str], row: int, mistake: str) -> None:
    """The weights of one query, right and wrong, and what every row's mistake amounts to."""
    from vizformer.analysis.mask_mistakes import given_away, masked_after, zeroed

    blocked = masked.reasons > 0
    after = mistake == "after"
    wrong = masked_after(masked.scores, blocked) if after else zeroed(masked.scores, blocked)
    name = _("mask after softmax") if after else _("0 instead of −∞")
    lines = [masked.scores[row], masked.weights[row], wrong[row]]
    cells = [[matrix.number(value, 3) for value in line] for line in lines]
    for line, numbers in zip(lines, cells, strict=True):
        numbers.append("" if line is lines[0] else matrix.number(float(line.sum()), 4))
    hatched = np.zeros((3, len(tokens) + 1), dtype=bool)
    hatched[:, : len(tokens)] = blocked[row]
    st.html(
        wording.table(_("Query {query}", query=row), [*tokens, "Σ"], [_("score"), _("right"), name], cells, hatched)
    )
    shares = wrong.sum(axis=1) if after else (wrong * blocked).sum(axis=1)
    title = _("What each row sums to") if after else _("What the blocked cells of each row keep")
    amounts = {name: shares}
    if after:
        amounts[_("missing: given to blocked keys")] = given_away(masked.scores, blocked)
    st.html(
        wording.table(
            title,
            [f"{i} · {token}" for i, token in enumerate(tokens)],
            list(amounts),
            [[matrix.number(value, 4) for value in values.tolist()] for values in amounts.values()],
        )
    )
    if after:
        st.latex(
            r"\sum_j \frac{e^{S_{ij}}}{\sum_k e^{S_{ik}}}\,[j \le i] \;=\; "
            rf"{shares[row]:.4f} \quad (i = {row})"
        )
        st.code(CODES["after"], language="python", wrap_lines=True)
    else:
        st.latex(
            rf"e^0 = 1: \qquad \frac{{{int(blocked[row].sum())} \cdot e^0}}{{\sum_j e^{{S'_{{{row}j}}}}}}"
            rf" \;=\; {shares[row]:.4f}"
        )
        st.code(CODES["zero"], language="python", wrap_lines=True)


def _precision(outcomes: "Sequence[Outcome]") -> None:
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
    st.code(CODES["half"], language="python", wrap_lines=True)


def _way(how: str, value: float | None) -> str:
    number = "finfo.min" if value is None else "−∞" if math.isinf(value) else "−10⁹" if value == -1e9 else "−10⁴"
    return _("filled with {number}", number=number) if how == "fill" else _("{number} added", number=number)


def _outcome(outcome: "Outcome", weight: str) -> str:
    return _("refused") if outcome.refused else matrix.number(getattr(outcome, weight), 3)


def _blind(masked: "Masked", tokens: list[str], row: int, fused: float) -> None:
    """The query's row blocked as a whole: 0 / 0, what it does to the next layer, and what the kernel gives."""
    from vizformer.analysis.mask_mistakes import naive_softmax, poisoned

    scores = masked.scores + masked.bias
    scores[row] = -np.inf
    weights = naive_softmax(scores)
    cells = [["−∞"] * len(tokens), [matrix.number(value, 3) for value in weights[row]]]
    st.html(wording.table(_("Query {query}, all keys blocked", query=row), tokens, [_("score"), _("exp / sum")], cells))
    st.latex(r"\frac{e^{-\infty}}{\sum_k e^{-\infty}} = \frac{0}{0} = \mathrm{NaN}")
    hit = int(poisoned(masked.weights, row).sum())
    st.text(
        _(
            "In the next layer this position's value is NaN. Weight 0 does not help: 0 · NaN = NaN. Rows that are NaN "
            "then: {hit} of {n}.",
            hit=hit,
            n=len(tokens),
        )
    )
    st.code(CODES["blind"], language="python", wrap_lines=True)
    st.text(
        _(
            "F.scaled_dot_product_attention on this machine gives such a row z with |z| up to {value}.",
            value=f"{fused:g}",
        )
    )
