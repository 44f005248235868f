"""The waves of the sinusoidal code, in the lesson Positions, and one of its numbers worked out."""

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.components import matrix
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.positions import computations
from vizformer.web.lessons.positions.code_choice import WIDTHS, position, rounded, whose, width
from vizformer.web.link.whole_number import whole
from vizformer.web.widgets import chart, lesson
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words import labels
from vizformer.web.words.figure_words import words
from vizformer.web.words.i18n import _

SPANS = (16, 64, 256, 1024)
MOST_PAIRS, MOST_ROWS = 5, 128


def chosen_pairs(d: int) -> tuple[int, ...]:
    """Which pairs of dimensions are drawn."""
    default = tuple(sorted({0, d // 16, d // 8, d // 4}))
    written = str(lesson.value("positions.pairs", "")).split(",")
    read = (whole(pair, d // 2 - 1) for pair in written)
    known = tuple(dict.fromkeys(pair for pair in read if pair is not None))[:MOST_PAIRS] or default
    key = f"positions.pairs.{d}"
    if tuple(st.session_state.get(key, ())) != known:
        st.session_state[key] = list(known)
    st.multiselect(
        _("Pairs of dimensions"),
        range(d // 2),
        label_visibility="collapsed",
        max_selections=MOST_PAIRS,
        key=key,
        on_change=_take_pairs,
        args=(key,),
        format_func=lambda pair: f"{pair} · λ = {rounded(computations.wavelength(d, pair))}",
    )
    return known


def _take_pairs(key: str) -> None:
    lesson.change("positions.pairs", ",".join(map(str, st.session_state[key])), "")


@laboratory
def waves(subject: Subject) -> None:
    """A curve per dimension, one number of the code worked out, and the code of the sentence as a map."""
    st.html(matrix.style())
    lesson.ask(turn_question())
    d = width(subject)
    span = st.select_slider(_("Positions shown"), SPANS, **lesson.setting("positions.span", SPANS[1], SPANS))
    cosines = st.toggle(_("The cosines too"), **lesson.setting("positions.cosines", False))
    with st.popover(_("Pairs of dimensions")):
        pairs = chosen_pairs(d)
    dims = tuple(dim for pair in pairs for dim in ((2 * pair, 2 * pair + 1) if cosines else (2 * pair,)))
    tokens = subject.tokens[: min(span, computations.MOST)]
    places, values = computations.waves(d, dims, span, max(257, min(1025, 4 * span + 1)))
    rows = computations.code(computations.ROWS, d)
    names = {
        dim: _("dimension {dim}, wavelength {length}", dim=dim, length=rounded(computations.wavelength(d, dim // 2)))
        for dim in dims
    }
    at = np.arange(len(tokens))
    chart.show(
        figures.line_curves(
            places,
            dict(zip(names.values(), values, strict=True)),
            place_title=_("position"),
            value_title=_("value"),
            hover=_("{name}: {value} at position {place}"),
            value_range=(-1.1, 1.1),
            height=330,
            dots=(at, {names[dim]: rows[at, dim] for dim in dims}, labels.numbered(tokens)),
        ),
        key="positions.waves",
    )
    fast, slow = computations.wavelength(d, 0), computations.wavelength(d, d // 2 - 1)
    st.caption(
        _(
            "Dots: the tokens of your sentence. The first pair turns once in {fast} positions (frequency {ffast} per "
            "position), the last once in {slow} ({fslow}).",
            fast=rounded(fast),
            ffast=f"{1 / fast:.3g}",
            slow=rounded(slow),
            fslow=f"{1 / slow:.2g}",
        )
    )
    whose(subject, d)
    one_number(d, rows)
    shown = min(span, MOST_ROWS)
    st.markdown(_("**The code of the first {n} positions**", n=shown))
    chart.show(
        figures.positional_heatmap(
            rows[:shown],
            end=1.0,
            names=[*labels.texts(tokens), *[""] * (shown - len(tokens))],
            words=words(figures.ENGLISH),
        ),
        key="positions.code",
    )


def one_number(d: int, rows: np.ndarray) -> None:
    """PE[pos, dim] in symbols, with its numbers and as code; two rows to compare."""
    pos = position()
    dim = st.slider(_("Dimension"), 0, d - 1, **lesson.setting("positions.dim", 4, range(d)))
    name = "cos" if dim % 2 else "sin"
    angle = pos / 10_000.0 ** (2 * (dim // 2) / d)
    exponent = f"{2 * (dim // 2)}/{d}"
    lesson.formula(
        r"\begin{aligned} \mathrm{PE}_{pos,\,2i} &= \sin\frac{pos}{10000^{2i/d}} \\"
        r" \mathrm{PE}_{pos,\,2i+1} &= \cos\frac{pos}{10000^{2i/d}} \end{aligned}",
        live=rf"\begin{{aligned}} \mathrm{{PE}}_{{{pos},{dim}}} &= \{name}\frac{{{pos}}}{{10000^{{{exponent}}}}} \\"
        rf" &= \{name}({angle:.4f}) = {rows[pos, dim]:.4f} \end{{aligned}}",
        code=f"pos, dim, d = {pos}, {dim}, {d}\n"
        "angle = torch.tensor(pos / 10000 ** (2 * (dim // 2) / d))\n"
        "value = torch.cos(angle) if dim % 2 else torch.sin(angle)",
    )
    for row in sorted({0, pos}):
        st.html(matrix.to_html(rows[row], caption=_("Position {position}", position=row)))


def turn_question() -> lesson.Number:
    """How long is the shortest wave?"""
    fastest = computations.wavelength(WIDTHS[0], 0)  # the same at every width
    return lesson.Number(
        "positions",
        "turn",
        _(
            "The first pair of dimensions holds sin(pos) and cos(pos). How many positions does it take until its wave has "
            "come round once?"
        ),
        fastest,
        _(
            "sin and cos come round after 2π = {length}. Every later pair is slower; in a wide code the slowest takes "
            "nearly 10000 times as long.",
            length=f"{fastest:.2f}",
        ),
        tolerance=0.1,
        written="{:.2f}".format,
    )
