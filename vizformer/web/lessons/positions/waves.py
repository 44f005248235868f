"""A laboratory of the lesson Positions: the waves of the sinusoidal code, and one of its numbers worked out."""

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.analysis import positions
from vizformer.analysis.positions import wavelength
from vizformer.components import matrix
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.positions.sinusoid import MOST, ROWS, WIDTHS, code, length, position, say_whose, width
from vizformer.web.link.link_settings import whole
from vizformer.web.widgets import chart, lesson
from vizformer.web.widgets.lab import Laboratory, controls, wrong_line
from vizformer.web.words import labels

lab = Laboratory("positions", "waves")
SPANS = (16, 64, 256, 1024)
MOST_PAIRS, MOST_ROWS = 5, 128


@cached
def compute_waves(d_model: int, dims: tuple[int, ...], last: int) -> tuple[np.ndarray, np.ndarray]:
    """Places 0..last and the dimensions' values there [dims, samples], fine enough to look smooth."""
    places = np.linspace(0, last, max(257, min(1025, 4 * last + 1)))
    return places, positions.waves(d_model, list(dims), places)


@lab.draws
def draw_waves(subject: Subject) -> None:
    lesson.ask(waves_question(subject), folded=True)  # first: the curves below give it away
    with controls():
        d = width(lab, subject)
        span = lab.steps("span", SPANS, 64)
        cosines = lab.toggle("cosines")
        with st.popover(lab.text("pairs")):
            pairs = _chosen_pairs(d)
    dims = tuple(dim for pair in pairs for dim in ((2 * pair, 2 * pair + 1) if cosines else (2 * pair,)))
    tokens = subject.tokens[: min(span, MOST)]
    (places, values), rows, at = compute_waves(d, dims, span), code(ROWS, d), np.arange(len(tokens))
    names = {dim: lab.text("dimension", dim=dim, length=length(d, dim // 2)) for dim in dims}
    chart.show(
        figures.line_curves(
            places,
            dict(zip(names.values(), values, strict=True)),
            place_title=lab.text("place"),
            value_title=lab.text("value"),
            hover=lab.text("hover"),
            value_range=(-1.1, 1.1),
            dots=(at, {names[dim]: rows[at, dim] for dim in dims}, labels.numbered(tokens)),
        ),
        key="positions.waves",
    )
    last = d // 2 - 1
    often = {"ffast": f"{1 / wavelength(d, 0):.3g}", "fslow": f"{1 / wavelength(d, last):.2g}"}
    lab.note("dots", fast=length(d, 0), slow=length(d, last), **often)
    say_whose(lab, subject, d)
    _one_number(d, rows)
    shown = min(span, MOST_ROWS)
    st.markdown(lab.text("code", n=shown))
    chart.show(
        figures.positional_heatmap(rows[:shown], end=1.0, names=[*labels.texts(tokens), *[""] * (shown - len(tokens))]),
        key="positions.code",
    )
    lesson.ask(line(subject), folded=True)


@lab.asks("turn")
def waves_question(subject: Subject) -> lesson.Number:
    fastest = wavelength(WIDTHS[0], 0)  # the same at every width
    wrong = {"half": fastest / 2, "slowest": 10000 * fastest, "degrees": 360, "radian": 1}
    said = lab.asked("turn", wrong=wrong, length=f"{fastest:.2f}")
    return lesson.Number(answer=fastest, tolerance=0.1, written="{:.2f}".format, **said)


@lab.asks("line")
def line(subject: Subject) -> lesson.Choice:
    return wrong_line(lab, "waves")


def _chosen_pairs(d: int) -> tuple[int, ...]:
    default = tuple(sorted({0, d // 16, d // 8, d // 4}))
    read = (whole(pair, d // 2 - 1) for pair in str(lesson.value("positions.pairs", "")).split(","))
    known = tuple(dict.fromkeys(pair for pair in read if pair is not None))[:MOST_PAIRS] or default
    key = f"positions.pairs.{d}"
    if tuple(st.session_state.get(key, ())) != known:
        st.session_state[key] = list(known)
    st.multiselect(
        lab.text("pairs"),
        range(d // 2),
        label_visibility="collapsed",
        max_selections=MOST_PAIRS,
        key=key,
        on_change=lambda: lesson.change("positions.pairs", ",".join(map(str, st.session_state[key])), ""),
        format_func=lambda pair: f"{pair} · λ = {length(d, pair)}",
    )
    return known


def _one_number(d: int, rows: np.ndarray) -> None:
    """PE[pos, dim] in symbols, with its numbers and as code; two rows to compare."""
    with controls():
        pos, dim = position(lab), lab.slider("dim", 0, d - 1, 4)
    name, exponent = "cos" if dim % 2 else "sin", f"{2 * (dim // 2)}/{d}"
    angle = pos / 10_000.0 ** (2 * (dim // 2) / d)
    lesson.formula(
        r"\begin{aligned} \mathrm{PE}_{pos,\,2i} &= \sin\frac{pos}{10000^{2i/d}} \\[1ex]"
        r" \mathrm{PE}_{pos,\,2i+1} &= \cos\frac{pos}{10000^{2i/d}} \end{aligned}",
        live=rf"\begin{{aligned}} \mathrm{{PE}}_{{{pos},{dim}}} &= \{name}\frac{{{pos}}}{{10000^{{{exponent}}}}} \\[1ex]"
        rf" &= \{name}({angle:.4f}) = {rows[pos, dim]:.4f} \end{{aligned}}",
        code=f"pos, dim, d = {pos}, {dim}, {d}\n"
        "angle = torch.tensor(pos / 10000 ** (2 * (dim // 2) / d))\n"
        "value = torch.cos(angle) if dim % 2 else torch.sin(angle)",
    )
    st.html(matrix.style())
    for row in sorted({0, pos}):
        st.html(matrix.to_html(rows[row], caption=lab.text("row", position=row)))
