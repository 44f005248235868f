"""A laboratory of the lesson Positions: dot products of the sinusoidal code, and what is promised of it, checked."""

import numpy as np
import streamlit as st
from jaxtyping import Float

from vizformer import figures
from vizformer.analysis import positions
from vizformer.components import matrix
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.positions.sinusoid import FURTHEST, MOST, ROWS, facts, say_whose, width
from vizformer.web.widgets import chart, lesson
from vizformer.web.widgets.lab import Laboratory, controls
from vizformer.web.words import labels
from vizformer.web.words.i18n import _

lab = Laboratory("positions", "distance")
FURTHER = 100  # positions that both are moved on, to compare


@cached
def by_distance(d_model: int) -> tuple[np.ndarray, np.ndarray]:
    """Distances and the dot product of two codes that far apart."""
    half = positions.product_by_distance(d_model, FURTHEST)
    return np.arange(-FURTHEST, FURTHEST + 1), np.concatenate([half[:0:-1], half])


@cached
def products(d_model: int) -> Float[np.ndarray, "n n"]:
    """The dot products of all pairs of the codes of the first positions."""
    return positions.code_products(MOST + FURTHER, d_model)


@lab.draws
def draw_dot_products(subject: Subject) -> None:
    """Dot products of the code: by pair of positions, by distance, and four promises checked."""
    lesson.ask(dot_products_question(subject))
    tokens = subject.tokens[:MOST]
    last = max(len(tokens) - 1, 1)
    with controls():
        d = width(lab, subject)
        i, j = lab.slider("i", 0, last, min(1, last)), lab.slider("j", 0, last, last)
    apart, values = by_distance(d)
    chart.show(
        figures.line_curves(
            apart,
            {"PE(i) · PE(j)": values},
            place_title=lab.text("apart"),
            value_title=lab.text("product"),
            hover=lab.text("hover"),
            mark=(i - j, f"{i} − {j} = {matrix.number(i - j, 0)}"),
        ),
        key="positions.products",
    )
    say_whose(lab, subject, d)
    pairs, on, too = products(d), i + FURTHER, j + FURTHER
    lesson.formula(
        r"\mathrm{PE}(i) \cdot \mathrm{PE}(j) = \sum_{m=0}^{d/2-1} \cos\big(\omega_m (i - j)\big)",
        live=rf"\begin{{aligned}} \mathrm{{PE}}({i}) \cdot \mathrm{{PE}}({j}) &= {pairs[i, j]:.4f} \\"
        rf" \mathrm{{PE}}({on}) \cdot \mathrm{{PE}}({too}) &= {pairs[on, too]:.4f} \end{{aligned}}",
        code=f"i, j, d = {i}, {j}, {d}\n"
        "omega = 10000.0 ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)  # of each pair\n\n"
        "def PE(pos):\n"
        "    return torch.stack([torch.sin(pos * omega), torch.cos(pos * omega)], dim=1).flatten()\n\n"
        "product = PE(i) @ PE(j)",
    )
    st.markdown(lab.text("sentence"))
    chart.show(
        figures.token_pairs(
            pairs[: len(tokens), : len(tokens)],
            labels.numbered(tokens),
            row_title=lab.text("row"),
            column_title=lab.text("column"),
        ),
        key="positions.map",
    )
    _promises(d)


@lab.asks("product")
def dot_products_question(subject: Subject) -> lesson.Choice:
    i, j, d = 2, 5, 64
    offered = [(i, j + 1), (2 * i, 2 * j), (i + FURTHER, j + FURTHER), (i + 1, j)]
    measured = _("; ").join(f"PE({a}) · PE({b}) = {products(d)[a, b]:.2f}" for a, b in [(i, j), *offered])
    wrong = {"farther": 0, "doubled": 1, "nearer": 3}
    said = lab.asked("product", wrong=wrong, i=i, j=j, distance=j - i, d=d, products=measured)
    return lesson.Choice(choices=[f"PE({a}) · PE({b})" for a, b in offered], answer=2, **said)


def _promises(d: int) -> None:
    """Draws the claims about the sinusoidal code, each with the number measured on its first rows."""
    found = facts(d)
    st.markdown(lab.text("checked", n=ROWS, d=d))
    norms = {"norm": f"{(d / 2) ** 0.5:.4f}", "low": f"{found.norms[0]:.4f}", "high": f"{found.norms[1]:.4f}"}
    promises = (
        lab.text("unique", apart=found.closest[1], distance=f"{found.closest[0]:.3f}"),
        lab.text("bounded", largest=f"{found.largest:.4f}", **norms),
        lab.text("relative", spread=f"{found.spread:.1e}"),
        lab.text("symmetric", difference=f"{found.asymmetry:.1e}" if found.asymmetry else "0"),
    )
    for promise in promises:
        st.markdown(f"- {promise}")
