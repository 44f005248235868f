"""Table 1 of the paper with numbers in it: what a layer costs, how much of it is sequential, how far two tokens are apart.

    type of layer               complexity per layer   sequential operations   maximum path length
    self-attention              n^2 d                  1                       1
    recurrent                   n d^2                  n                       n
    convolution, kernel k       k n d^2                1                       log_k n
    self-attention, restricted  r n d                  1                       n / r

Section 4 adds the convolution whose kernels lie side by side (path n / k) and the separable one (k n d + n d^2).  The
paths of `layer_types.reach` are the exact ones, of layers that look back only.

Source: Vaswani et al. 2017, Table 1 and section 4.
"""

import math
from dataclasses import dataclass
from typing import Literal, get_args

RowKind = Literal["attention", "recurrent", "convolution", "restricted", "contiguous", "separable"]
ROWS: tuple[RowKind, ...] = get_args(RowKind)
IN_TABLE: tuple[RowKind, ...] = ("attention", "recurrent", "convolution", "restricted")
"""The rows of the table itself; the others are from the text of section 4."""


@dataclass(frozen=True)
class Complexity:
    """A row of the table for n tokens and a width of d."""

    kind: RowKind
    per_layer: int  # multiplications, without the constants that an order of growth leaves out
    sequential: int  # operations that have to wait for each other
    path: float  # the maximum path length as the table has it: log_k n and n / r are rarely whole numbers


def complexity(kind: RowKind, n: int, d: int, k: int = 3, r: int = 8) -> Complexity:
    """One row; a kernel or window that is wider than the text ends where it does.

    Raises:
        ValueError: fewer than one token or number, a kernel of fewer than 2, a window of fewer than 1.
    """
    if n < 1 or d < 1 or k < 2 or r < 1:
        raise ValueError(f"n={n}, d={d}, k={k}, r={r}: n, d and r must be at least 1, k at least 2")
    seen = min(r, n)
    per_layer = {
        "attention": n * n * d,
        "recurrent": n * d * d,
        "convolution": k * n * d * d,
        "restricted": seen * n * d,
        "contiguous": k * n * d * d,
        "separable": k * n * d + n * d * d,
    }[kind]
    path = {
        "attention": 1.0,
        "recurrent": float(n),
        "convolution": max(1.0, math.log(n) / math.log(k)),
        "restricted": n / seen,
        "contiguous": max(1.0, n / k),
        "separable": max(1.0, math.log(n) / math.log(k)),
    }[kind]
    return Complexity(kind, per_layer, n if kind == "recurrent" else 1, path)


def table_one(n: int, d: int, k: int = 3, r: int = 8) -> tuple[Complexity, ...]:
    """All rows, those of the table first."""
    return tuple(complexity(kind, n, d, k, r) for kind in ROWS)
