"""Linear attention: without the softmax the products may be bracketed the other way.

    (phi(Q) phi(K)^T) V     n x n weights, 2 n^2 d multiplications
    phi(Q) (phi(K)^T V)     a d x d state, 2 n d^2 multiplications

    causal:  S_i = S_(i-1) + phi(k_i)^T v_i,   u_i = u_(i-1) + phi(k_i),   z_i = phi(q_i) S_i / (phi(q_i) . u_i)

with phi(x) = elu(x) + 1 > 0.  It is another function than softmax(q k^T / sqrt(d)) v: not an approximation of it.

Source: Katharopoulos et al. 2020, "Transformers are RNNs: Fast Autoregressive Transformers with Linear Attention",
sections 3.2 and 3.3.
"""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from numpy import ndarray

from vizformer.explain.arrays import float64
from vizformer.explain.step import Proof
from vizformer.messages import N_
from vizformer.model.input_check import row_at
from vizformer.model.masks import Reason
from vizformer.model.records import AttentionRecord


def phi(x: Float[ndarray, "..."]) -> Float[ndarray, "..."]:
    """elu(x) + 1: x + 1 above 0, e^x below; always positive."""
    return np.where(x > 0, x + 1, np.exp(np.minimum(x, 0)))


@dataclass(frozen=True)
class LinearAttention:
    """A head's queries, keys and values with phi in the place of the softmax."""

    # whether a query sees no later key, as in the head itself; other masks and position biases are not kept
    causal: bool
    weights: Float[ndarray, "n_q n_k"]  # phi(q_i) . phi(k_j), divided by the sum of the row
    softmax: Float[ndarray, "n_q n_k"]  # the head's own weights
    z: Float[ndarray, "n_q d_head"]  # by the state, row after row
    own: Float[ndarray, "n_q d_head"]  # z of the head itself
    proof: Proof  # z by the state against z by the n x n weights (PyTorch)

    @property
    def apart(self) -> Float[ndarray, " n_q"]:
        """|z - own| / |own| of every query; 0 where `own` is 0."""
        length = np.linalg.norm(self.own, axis=1)
        return np.linalg.norm(self.z - self.own, axis=1) / np.where(length > 0, length, np.inf)


@dataclass(frozen=True)
class Bracketing:
    """Multiplications of both bracketings, and the numbers that each holds, for n queries and n keys."""

    through_weights: int
    through_state: int
    weights_held: int
    state_held: int


def bracketing(n: int, d: int) -> Bracketing:
    """Multiplications and held numbers for n tokens: 2 n^2 d and n^2 through the weights, 2 n d^2 and d^2 + d through
    the state. The row sums, n^2 and n d, are not counted.
    """
    return Bracketing(2 * n * n * d, 2 * n * d * d, n * n, d * d + d)


def is_causal(record: AttentionRecord, head: int) -> bool:
    """Whether the head's mask is causal."""
    return bool((record.reason(head) == Reason.FUTURE).any())


def linear_attention(record: AttentionRecord, head: int) -> LinearAttention:
    """Linear attention with the queries, keys and values of a head, computed in both ways."""
    kv = record.kv_head(head)
    causal = is_causal(record, head)
    q, k, v = float64(record.q[head]), float64(record.k[kv]), float64(record.v[kv])
    z = _by_state(phi(q), phi(k), v, causal)
    weights = _weights(record.q[head].float(), record.k[kv].float(), causal)  # [n_q, n_k]
    return LinearAttention(
        causal,
        float64(weights),
        float64(record.pattern(head)),
        z,
        float64(record.z(head)),
        Proof.compare(N_("(φ(Q) φ(K)ᵀ) V in PyTorch, through the n × n weights"), z, weights @ record.v[kv].float()),
    )


def state(record: AttentionRecord, head: int, query: int) -> Float[ndarray, "d_head d_value"]:
    """The state that a query reads: the sum of phi(k_j)^T v_j over the keys j that it sees."""
    kv = record.kv_head(head)
    seen = row_at(query, record.q.shape[1]) + 1 if is_causal(record, head) else record.k.shape[1]
    return phi(float64(record.k[kv, :seen])).T @ float64(record.v[kv, :seen])


def _by_state(q: ndarray, k: ndarray, v: ndarray, causal: bool) -> ndarray:
    if not causal:
        return q @ (k.T @ v) / (q @ k.sum(0))[:, None]
    s, u, rows = np.zeros((k.shape[1], v.shape[1])), np.zeros(k.shape[1]), []
    for q_i, k_i, v_i in zip(q, k, v, strict=True):
        s += np.outer(k_i, v_i)
        u += k_i
        rows.append(q_i @ s / (q_i @ u))
    return np.stack(rows)


def _weights(q: torch.Tensor, k: torch.Tensor, causal: bool) -> torch.Tensor:
    products = (F.elu(q) + 1) @ (F.elu(k) + 1).T  # [n_q, n_k]
    products = products.tril() if causal else products
    return products / products.sum(-1, keepdim=True)
