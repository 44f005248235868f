"""What can be measured of the sinusoidal code: its waves, how it turns from one position to the next, its products."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from vizformer.model.positions import sinusoidal_encoding


def frequencies(d_model: int) -> Float[np.ndarray, " pairs"]:
    """omega_i = 10000^(-2i/d_model), radians per position: pair i of dimensions (2i, 2i+1) turns by it every step.

    The wavelength is 2 pi / omega_i positions.  Source: Vaswani et al. 2017, section 3.5.
    """
    return 10_000.0 ** (-np.arange(0, d_model, 2) / d_model)


def wavelength(d_model: int, pair: int) -> float:
    """2 pi / omega_i: positions until the pair has turned once."""
    return float(2 * math.pi * 10_000.0 ** (2 * pair / d_model))


def waves(d_model: int, dims: Sequence[int], places: Float[np.ndarray, " n"]) -> Float[np.ndarray, "dims n"]:
    """The code's dimensions at any real position: sin(pos omega_i) where even, cos(pos omega_i) where odd."""
    angle = frequencies(d_model)[np.array(dims) // 2][:, None] * places  # [dims, n]
    odd = np.array([dim % 2 == 1 for dim in dims])[:, None]
    return np.where(odd, np.cos(angle), np.sin(angle))


def shift_matrix(k: int, d_model: int) -> Float[np.ndarray, "d_model d_model"]:
    """R(k) with PE(pos + k) = R(k) PE(pos) for every pos: one 2 x 2 rotation per pair, zeros elsewhere.

    [ sin((pos+k) w) ]   [  cos kw   sin kw ] [ sin(pos w) ]
    [ cos((pos+k) w) ] = [ -sin kw   cos kw ] [ cos(pos w) ]

    by the addition theorems.  Source: the remark in Vaswani et al. 2017, section 3.5, worked out.
    """
    turn = np.zeros((d_model, d_model))
    even = np.arange(0, d_model, 2)
    angle = k * frequencies(d_model)
    turn[even, even] = turn[even + 1, even + 1] = np.cos(angle)
    turn[even, even + 1], turn[even + 1, even] = np.sin(angle), -np.sin(angle)
    return turn


@dataclass(frozen=True)
class CodeFacts:
    """What the first n rows of the sinusoidal code have in common, measured on the rows themselves."""

    largest: float  # largest |entry|; never above 1
    norms: tuple[float, float]  # smallest and largest length of a row; both sqrt(d_model / 2)
    closest: tuple[float, int]  # smallest distance between two different rows, and how far apart these stand
    spread: float  # by how much PE(i).PE(j) differs at most among pairs with the same i - j
    asymmetry: float  # by how much PE(i).PE(j) and PE(j).PE(i) differ at most
    shift_error: float  # largest |PE(pos + k) - R(k) PE(pos)| over all pos, for the k asked for


def code_facts(n: int, d_model: int, k: int = 1) -> CodeFacts:
    """Measures the code of positions 0..n-1, at least 2, as the model adds it (float32 rows, float64 arithmetic)."""
    rows = sinusoidal_encoding(n, d_model).double().numpy()  # [n, d_model]
    products = rows @ rows.T  # [n, n]
    norms = np.sqrt(np.diag(products))
    squared = np.diag(products)[:, None] + np.diag(products)[None, :] - 2 * products
    np.fill_diagonal(squared, np.inf)
    i, j = np.unravel_index(int(squared.argmin()), squared.shape)
    spread = max(float(np.ptp(np.diag(products, apart))) for apart in range(n))
    k = min(k, n - 1)
    moved = rows[: n - k] @ shift_matrix(k, d_model).T
    return CodeFacts(
        largest=float(np.abs(rows).max()),
        norms=(float(norms.min()), float(norms.max())),
        closest=(float(np.linalg.norm(rows[i] - rows[j])), abs(int(i) - int(j))),
        spread=spread,
        asymmetry=float(np.abs(products - products.T).max()),
        shift_error=float(np.abs(rows[k:] - moved).max()),
    )


def product_by_distance(d_model: int, furthest: int) -> Float[np.ndarray, " distances"]:
    """PE(i).PE(j) for |i - j| = 0..furthest: the sum of cos(omega_i (i - j)) over the pairs."""
    return np.cos(np.arange(furthest + 1)[:, None] * frequencies(d_model)).sum(axis=1)


def code_products(n: int, d_model: int) -> Float[np.ndarray, "n n"]:
    """PE(i).PE(j) of positions 0..n-1, as the model adds them (float32 rows, float64 arithmetic)."""
    rows = sinusoidal_encoding(n, d_model).double().numpy()  # [n, d_model]
    return rows @ rows.T


def cosines(rows: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n n"]:
    """cos(x_i, x_j) = x_i.x_j / (|x_i| |x_j|) of all pairs of rows; none of them may be zero."""
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit @ unit.T
