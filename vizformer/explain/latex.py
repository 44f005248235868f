"""Numbers as LaTeX: live formulas with long sums elided.  Token texts never go in here (they could be markup)."""

from collections.abc import Sequence

import numpy as np
from numpy import ndarray

SHOWN_TERMS = 2


def number(value: float, digits: int = 4) -> str:
    """-inf as a symbol; very small numbers in powers of ten; otherwise fixed digits."""
    if np.isneginf(value):
        return r"-\infty"
    if value != 0 and abs(value) < 0.5 * 10**-digits:
        mantissa, exponent = f"{value:.2e}".split("e")
        return rf"{mantissa} \cdot 10^{{{int(exponent)}}}"
    return f"{value:.{digits}f}"


def factor(value: float) -> str:
    """A number that may follow a sign or a dot: negative ones in parentheses."""
    text = number(value)
    return f"({text})" if text.startswith("-") else text


def _elide(terms: Sequence[str], joint: str) -> str:
    if len(terms) <= 2 * SHOWN_TERMS:
        return joint.join(terms)
    return joint.join([*terms[:SHOWN_TERMS], r"\dots", terms[-1]])


def sum_of_products(left: ndarray, right: ndarray, add: float | None = None) -> str:
    """a_0 b_0 + a_1 b_1 + ... (+ add)."""
    terms = [rf"{factor(a)} \cdot {factor(b)}" for a, b in zip(left, right, strict=True)]
    text = _elide(terms, " + ")
    return text if add is None else f"{text} + {factor(add)}"


def sum_of(values: ndarray) -> str:
    return _elide([factor(float(v)) for v in values], " + ")


def row(values: ndarray) -> str:
    """A row vector; beyond eight entries the middle is elided."""
    if len(values) <= 8:
        shown = [number(float(v)) for v in values]
    else:
        shown = [*(number(float(v)) for v in values[:5]), r"\cdots", *(number(float(v)) for v in values[-2:])]
    return r"\begin{bmatrix}" + " & ".join(shown) + r"\end{bmatrix}"
