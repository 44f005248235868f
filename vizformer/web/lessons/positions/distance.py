"""Dot products of the sinusoidal code, in the lesson Positions, and what is promised of it, checked."""

import streamlit as st

from vizformer import figures
from vizformer.components import matrix
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.positions import computations
from vizformer.web.lessons.positions.code_choice import FURTHEST, whose, width
from vizformer.web.widgets import chart, lesson
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words import labels
from vizformer.web.words.figure_words import words
from vizformer.web.words.i18n import _

FURTHER = 100  # positions that both are moved on, to compare


@laboratory
def distance(subject: Subject) -> None:
    """Dot products of the code: by pair of positions, by distance, and four promises checked."""
    lesson.ask(product_question())
    d = width(subject)
    tokens = subject.tokens[: computations.MOST]
    apart, products = computations.products(d, FURTHEST)
    last = max(len(tokens) - 1, 1)
    i = st.slider(_("Position i"), 0, last, **lesson.setting("positions.i", min(1, last), range(last + 1)))
    j = st.slider(_("Position j"), 0, last, **lesson.setting("positions.j", last, range(last + 1)))
    chart.show(
        figures.line_curves(
            apart,
            {_("PE(i) · PE(j)"): products},
            place_title=_("distance i − j, in positions"),
            value_title=_("dot product"),
            hover=_("{place} positions apart: {value}"),
            mark=(i - j, f"{i} − {j} = {matrix.number(i - j, 0)}"),
            height=300,
        ),
        key="positions.products",
    )
    whose(subject, d)
    pairs = computations.code_products(computations.MOST + FURTHER, d)
    on, too = i + FURTHER, j + FURTHER
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
    names = labels.numbered(tokens)
    st.markdown(_("**PE(i) · PE(j) in your sentence**"))
    chart.show(
        figures.token_pairs(
            pairs[: len(tokens), : len(tokens)],
            names,
            row_title=_("position i"),
            column_title=_("position j"),
            words=words(figures.ENGLISH),
        ),
        key="positions.map",
    )
    promises(d)


def promises(d: int) -> None:
    """What is said of the code, each with the number measured on its first rows."""
    found = computations.facts(d)
    st.markdown(_("**Checked on the first {n} rows of width {d}**", n=computations.ROWS, d=d))
    for line in (
        _(
            "Unique: the two rows most alike stand {apart} apart and differ by {distance} (Euclidean distance).",
            apart=found.closest[1],
            distance=f"{found.closest[0]:.3f}",
        ),
        _(
            "Bounded: no number is larger than {largest} in size; every row has the length √(d/2) = {norm} (measured: "
            "{low} to {high}).",
            largest=f"{found.largest:.4f}",
            norm=f"{(d / 2) ** 0.5:.4f}",
            low=f"{found.norms[0]:.4f}",
            high=f"{found.norms[1]:.4f}",
        ),
        _("Relative: pairs equally far apart have the same dot product, up to {spread}.", spread=f"{found.spread:.1e}"),
        _(
            "Symmetric: PE(i) · PE(j) and PE(j) · PE(i) differ by {difference}: the product alone does not say which "
            "comes first.",
            difference=f"{found.asymmetry:.1e}" if found.asymmetry else "0",
        ),
    ):
        st.markdown(f"- {line}")


def product_question() -> lesson.Choice:
    """Which other two positions have the same product?"""
    i, j, d = 2, 5, 64
    pairs = computations.code_products(computations.MOST + FURTHER, d)
    offered = [(i, j + 1), (2 * i, 2 * j), (i + FURTHER, j + FURTHER), (i + 1, j)]
    return lesson.Choice(
        "positions",
        "product",
        _("Which product is the same as PE({i}) · PE({j})?", i=i, j=j),
        [f"PE({first}) · PE({second})" for first, second in offered],
        2,
        _(
            "The product depends on the distance alone, here {distance}. At width {d}: {products}.",
            distance=j - i,
            d=d,
            products=_("; ").join(f"PE({a}) · PE({b}) = {pairs[a, b]:.2f}" for a, b in [(i, j), *offered]),
        ),
    )
