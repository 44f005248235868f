"""A mixture of experts (`vizformer.model.experts`) by hand: two tokens, and four networks with one hidden number each.

    p = softmax(W_r x),   T = the k largest of p,   g_e = p_e / sum_{e' in T} p_e'   (or g_e = p_e),   0 outside of T
    y = sum_{e in T} g_e FFN_e(x),   FFN_e(x) = u_e max(0, w_e . x)

Source: Shazeer et al. 2017, "Outrageously Large Neural Networks: The Sparsely-Gated Mixture-of-Experts Layer",
section 2; Jiang et al. 2024, "Mixtral of Experts", section 2.1; for weights as they are Fedus et al. 2021, "Switch
Transformers", section 2.1.
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from vizformer.explain.arrays import softmax

ROUTER = np.array([[2.0, 0.0], [-1.0, 2.0], [-2.0, -1.0], [1.0, -2.0]])  # no ties at whole multiples of 15 degrees
W_IN = np.array([[2.0, 1.0], [0.0, 2.0], [-2.0, 0.0], [1.0, -1.0]])
W_OUT = np.array([[1.0, 2.0], [2.0, -1.0], [-1.0, 1.0], [3.0, 0.0]])
FIRST = (1.0, 1.0)  # the first token's row


@dataclass(frozen=True)
class TwoRouted:
    """Two tokens through the layer: `weights` are 0 for experts that are not chosen, whose `outputs` are not needed."""

    x: Float[ndarray, "2 2"]
    scores: Float[ndarray, "2 experts"]
    probabilities: Float[ndarray, "2 experts"]
    weights: Float[ndarray, "2 experts"]
    outputs: Float[ndarray, "2 experts 2"]
    y: Float[ndarray, "2 2"]


def two_routed(degrees: int, k: int, *, renormalised: bool) -> TwoRouted:
    """The second token's row has the length 1 and this direction; each token is given `k` of the four experts."""
    angle = math.radians(degrees)
    x = np.round(np.array([FIRST, (math.cos(angle), math.sin(angle))]), 12)  # cos 90 degrees is 0
    scores = x @ ROUTER.T
    p = softmax(scores)
    chosen = p >= np.sort(p, axis=-1)[:, [-k]]
    g = np.where(chosen, p, 0.0)
    g = g / g.sum(-1, keepdims=True) if renormalised else g
    outputs = np.maximum(0.0, x @ W_IN.T)[..., None] * W_OUT
    return TwoRouted(x, scores, p, g, outputs, (g[..., None] * outputs).sum(1))
