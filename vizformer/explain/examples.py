"""Attention small enough for paper: the examples that courses use, and attention without any weights."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from vizformer.explain.arrays import float64, softmax
from vizformer.model.trace import Trace


@dataclass(frozen=True)
class PaperAttention:
    """softmax(Q K^T / divisor) V, with all intermediate results."""

    q: Float[ndarray, "n_q d"]
    k: Float[ndarray, "n_k d"]
    v: Float[ndarray, "n_k d_v"]
    divisor: float
    scores: Float[ndarray, "n_q n_k"]
    weights: Float[ndarray, "n_q n_k"]
    output: Float[ndarray, "n_q d_v"]


def paper_attention(
    q: Float[ndarray, "n_q d"], k: Float[ndarray, "n_k d"], v: Float[ndarray, "n_k d_v"], *, scaled: bool = True
) -> PaperAttention:
    """Scaled dot-product attention in float64.

    Attention(Q, K, V) = softmax(Q K^T / sqrt(d_k)) V;  without `scaled` the division is left out.

    Raises:
        ValueError: widths or numbers of rows that do not fit.

    Source: Vaswani et al. 2017, equation 1.
    """
    q, k, v = (np.asarray(a, dtype=np.float64) for a in (q, k, v))
    if q.shape[1] != k.shape[1] or len(k) != len(v):
        raise ValueError(f"q {q.shape}, k {k.shape} and v {v.shape} do not fit")
    divisor = float(np.sqrt(q.shape[1])) if scaled else 1.0
    scores = q @ k.T / divisor
    weights = softmax(scores)
    return PaperAttention(q, k, v, divisor, scores, weights, weights @ v)


def attention_without_weights(x: Float[ndarray, "n d"], *, scaled: bool = False) -> PaperAttention:
    """softmax(X X^T) X: every row attends to rows similar to itself; with W_Q = W_K = W_V = I nothing is learned.

    The scores are symmetric (x_i . x_j = x_j . x_i); the three matrices make them asymmetric.
    """
    return paper_attention(x, x, x, scaled=scaled)


def first_layer_attention(trace: Trace, stack: str, *, identity: bool, scaled: bool = True) -> PaperAttention:
    """The attention of head 0 in a stack's first layer on the traced text, without mask and position bias.

    With `identity` the matrices are left out: softmax(X X^T) X of the layer's input.  Otherwise the head's traced
    queries, keys and values are used.
    """
    if identity:
        return attention_without_weights(float64(trace.residual(f"{stack}.0.pre")), scaled=scaled)
    record = trace[f"{stack}.0.self"]
    return paper_attention(float64(record.q[0]), float64(record.k[0]), float64(record.v[0]), scaled=scaled)


# Two rows with identity projections, d_k = 3: weights 0.64 and 0.36.
TWO_ROWS = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])

# One query and four keys. A widely copied text prints weights that are no softmax of anything, for these numbers.
QUERY = np.array([[1.0, 0.0]])
KEYS = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.0, 0.0]])
VALUES = np.array([[1.0], [2.0], [3.0], [4.0]])
PRINTED_WEIGHTS = np.array([0.5, 0.1, 0.5, 0.1])
PRINTED_OUTPUT = 2.1
PRINTED_SUM = float(PRINTED_WEIGHTS.sum())  # the weights of a softmax would sum to 1
PRINTED_WEIGHTS_GIVE = float(PRINTED_WEIGHTS @ VALUES[:, 0])  # the output with these weights
