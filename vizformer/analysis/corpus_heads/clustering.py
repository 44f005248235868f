"""Which heads are alike: clusters by average linkage."""

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray

ALIKE = 0.7


def clusters(
    similarity: Float[ndarray, "compared compared"], heads: int, alike: float = ALIKE
) -> Int[ndarray, " heads"]:
    """Joins the two clusters whose heads are most alike on average, until none are as much as `alike`.

    similarity(A, B) = mean over a in A, b in B of similarity[a, b]

    The number of a cluster is its place in the order of their first heads.  NaN counts as not alike.  Where nothing was
    compared (an empty matrix), every head is its own.

    Source: Sokal & Michener 1958, "A Statistical Method for Evaluating Systematic Relationships" (UPGMA).
    """
    if not similarity.size:
        return np.arange(heads)
    near = np.where(np.isfinite(similarity), similarity, -1.0).astype(np.float64)
    np.fill_diagonal(near, -np.inf)
    size, member = np.ones(heads), np.arange(heads)
    while heads > 1:
        flat = int(near.argmax())
        a, b = sorted(np.unravel_index(flat, near.shape))
        if near[a, b] < alike:
            break
        joined = (size[a] * near[a] + size[b] * near[b]) / (size[a] + size[b])
        near[a], near[:, a] = joined, joined
        near[b], near[:, b], near[a, a] = -np.inf, -np.inf, -np.inf
        size[a] += size[b]
        member[member == b] = a
    __, first, found = np.unique(member, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[found]
