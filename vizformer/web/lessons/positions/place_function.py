"""Why a position enters as f(x, m), in the lesson Positions: a pair of tokens moved on together, under every scheme."""

import html

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.components import table
from vizformer.components.table import Number, Row
from vizformer.options.positions import Positions
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.positions import computations
from vizformer.web.lessons.positions.schemes import choose_pair, names
from vizformer.web.widgets import chart, lesson
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words import labels
from vizformer.web.words.i18n import _

HEAD, FURTHEST, KEPT = 0, 48, 1e-3  # of the first layer; moves that are shown; a change so small is rounding
DRAWING = """<style>.vf-place {{ display: grid; grid-template-columns: auto auto auto; gap: 0.5rem 1rem;
align-items: center; justify-content: start }} .vf-place span {{ border: 1px solid currentColor; border-radius: 6px;
padding: 0.35rem 0.7rem; text-align: center }} .vf-place b {{ font-weight: normal; white-space: nowrap }}</style>
<div class="vf-place" role="img" aria-label="{said}">
<b>{query}, m = {m} →</b><span>f<sub>q</sub>(x, m)</span><b>→ q<sub>m</sub> ↘</b>
<b></b><b></b><span>q<sub>m</sub> · k<sub>n</sub></span>
<b>{key}, n = {n} →</b><span>f<sub>k</sub>(x, n)</span><b>→ k<sub>n</sub> ↗</b></div>"""


@laboratory
def place_function(subject: Subject) -> None:
    """The function that makes a query of a token and its place, and what each choice of it does to the score."""
    st.html(table.style())
    tokens = computations.words_only(subject)[: computations.MOST]
    numbered = labels.numbered(tokens)
    m, n = choose_pair(numbered, _("The token that asks, at place m"), _("The token that answers, at place n"))
    shown = {"query": numbered[m], "key": numbered[n]}
    said = _("Token and place go into f; the query and the key that come out are multiplied to a score.")
    st.html(
        DRAWING.format(
            said=html.escape(said, quote=True),
            m=m,
            n=n,
            **{name: html.escape(text[:12]) for name, text in shown.items()},
        )
    )
    scores = moved_scores(subject, m, n)
    change = {scheme: float(np.ptp(values)) for scheme, values in scores.items()}
    lesson.ask(moved_question(subject, m, n))
    chart.show(
        figures.line_curves(
            np.arange(FURTHEST + 1),
            {names()[scheme]: values for scheme, values in scores.items()},
            title=_("The score of “{query}” for “{key}”, both moved on", **shown),
            place_title=_("both moved on by s positions"),
            value_title=_("score"),
            hover=_("{name}: a score of {value} where both are moved on by {place}"),
        ),
        key="positions.moved",
    )
    rows = [
        Row((names()[scheme], formula, Number(change[scheme], f"{change[scheme]:.2g}"))) for scheme, formula in forms()
    ]
    columns = ("", _("query of a token x at place m"), _("largest change of the score"))
    st.html(table.to_html(columns, rows, caption=_("What f is, and what moving the pair does")))
    lesson.formula(
        r"f_q(x_m, m) \cdot f_k(x_n, n) = g(x_m, x_n, m - n)",
        live=rf"f(x, {m}) = R_{{{m}}} W_Q\, x \;\Rightarrow\; q_{{{m}}} \cdot k_{{{n}}} = "
        rf"(W_Q x)^\top R_{{{n - m}}} W_K x'",
        code="theta = 0.3\n"
        "R = lambda m: torch.tensor([[math.cos(m * theta), -math.sin(m * theta)], "
        "[math.sin(m * theta), math.cos(m * theta)]])\n"
        "q, k = torch.randn(2, 2)  # W_Q x and W_K x', without a place\n"
        f"here, moved = (R({m} + s) @ q @ (R({n} + s) @ k) for s in (0, 10))\n"
        "same = torch.allclose(here, moved, atol=1e-5)",
    )
    st.caption(
        _(
            "Head 0 of the first layer of small untrained models whose weights are the same; only the way to tell positions "
            "differs. The learned rows and T5's biases are those of the trained models of part 7."
        )
    )


def forms() -> list[tuple[Positions, str]]:
    """What the query of a token at place m is under every scheme; the key likewise."""
    return [
        ("none", "W_Q x"),
        ("sinusoidal", _("W_Q (x + p_m), p_m computed")),
        ("learned", _("W_Q (x + p_m), p_m learned")),
        ("rope", _("R_m W_Q x, R_m turns by an angle that grows with m")),
        ("alibi", _("W_Q x; slope · (m − n) is taken off the score")),
        ("relative", _("W_Q x; a number for m − n is added to the score")),
    ]


def moved_scores(subject: Subject, m: int, n: int) -> dict[Positions, np.ndarray]:
    """The score of the pair (m, n) of the text's words under each scheme, where both are moved on by 0, 1, ... places."""
    tokens, vocab_size = computations.words_only(subject), subject.config.input_vocab_size
    return {
        scheme: computations.moved_scores(scheme, vocab_size, tokens[m].id, tokens[n].id, m - n, FURTHEST)[HEAD]
        for scheme in computations.SCHEMES
    }


def moved_question(subject: Subject, m: int, n: int) -> lesson.Choice | None:
    """Which of the schemes does not keep the score of a pair that moves on together?"""
    change = {scheme: float(np.ptp(values)) for scheme, values in moved_scores(subject, m, n).items()}
    offered: tuple[Positions, ...] = ("rope", "alibi", "sinusoidal", "none")
    changing = max(offered, key=change.__getitem__)
    if change[changing] < KEPT:
        return None
    return lesson.Choice(
        "positions",
        "moved",
        _(
            "Two tokens are moved on together, so that their distance stays. With which way to tell positions does their "
            "score change?"
        ),
        [names()[scheme] for scheme in offered],
        offered.index(changing),
        _(
            "“{scheme}” adds a row to the input. The product then has terms of a content with a place, and these change by "
            "up to {change} here. The others depend on the distance alone, or on no place at all.",
            scheme=names()[changing],
            change=f"{change[changing]:.2g}",
        ),
        about=f"{subject.model} {subject.text}",
    )
