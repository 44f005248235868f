"""Numbers as LaTeX: live formulas with long sums elided.  Token texts never go in here (they could be markup)."""

import math
from collections.abc import Callable

from numpy import ndarray

SHOWN_TERMS = 2


def number(value: float, digits: int = 4) -> str:
    """Infinities as symbols, NaN as a word; very small numbers in powers of ten; otherwise fixed digits."""
    if not math.isfinite(value):
        return r"\text{NaN}" if math.isnan(value) else r"\infty" if value > 0 else r"-\infty"
    if value != 0 and abs(value) < 0.5 * 10**-digits:
        mantissa, exponent = f"{value:.2e}".split("e")
        return rf"{mantissa} \cdot 10^{{{int(exponent)}}}"
    return f"{value:.{digits}f}"


def factor(value: float) -> str:
    """A number that may follow a sign or a dot: negative ones in parentheses."""
    text = number(value)
    return f"({text})" if text.startswith("-") else text


def _joined(n: int, term: Callable[[int], str]) -> str:
    """The sum of n terms, written one by one; if there are many, the first few and the last."""
    if n <= 2 * SHOWN_TERMS:
        return " + ".join(map(term, range(n)))
    return " + ".join([*map(term, range(SHOWN_TERMS)), r"\dots", term(n - 1)])


def sum_of_products(left: ndarray, right: ndarray, add: float | None = None) -> str:
    """a_0 b_0 + a_1 b_1 + ... (+ add)."""
    if len(left) != len(right):
        raise ValueError(f"{len(left)} numbers cannot be multiplied one by one with {len(right)}")
    text = _joined(len(left), lambda i: rf"{factor(left[i])} \cdot {factor(right[i])}")
    return text if add is None else f"{text} + {factor(add)}"


def sum_of(values: ndarray) -> str:
    return _joined(len(values), lambda i: factor(float(values[i])))


def row(values: ndarray) -> str:
    """A row vector; beyond eight entries the middle is elided."""
    if len(values) <= 8:
        shown = [number(float(v)) for v in values]
    else:
        shown = [*(number(float(v)) for v in values[:5]), r"\cdots", *(number(float(v)) for v in values[-2:])]
    return r"\begin{bmatrix}" + " & ".join(shown) + r"\end{bmatrix}"
