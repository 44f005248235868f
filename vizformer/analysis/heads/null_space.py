"""Effective attention: what of a head's weights can reach its output at all.

A head puts out z_i = a_i V, with its row of weights a_i [n] and the values V [n, d_head] of the keys that row i sees.  With
more keys than V has rank, weights can be moved about without any change of z_i: along the left null space of V,

    a_i = effective_i + rest_i        rest_i V = 0        effective_i = a_i V V^+

where V V^+ projects onto the column space of V.  `effective_i` is the shortest row that gives the same z_i; it may have
entries below 0 and sums to what it sums to.  V is what the forward had, digit by digit, with its bias: singular
values below 4 eps of float32 times the largest count as 0, in half precision too.  W_O is taken to lose nothing of z_i.
Weights that are large where effective ones are small say little about what the head has read.

Source: Brunner et al. 2020, "On Identifiability in Transformers" (effective attention), for one head.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy import ndarray

from vizformer.explain.arrays import float64
from vizformer.explain.step import Proof
from vizformer.messages import N_
from vizformer.model import Trace

_AT_ONCE = 2**22  # numbers of values, masked row by row, that are taken apart at once


@dataclass(frozen=True)
class EffectiveAttention:
    """The weights of a head and what of them is effective, see the module.

    Attributes:
        free: in how many directions the weights of a row can change and z stays: keys that it sees, less the rank of V.
        proof: the effective rows times V against the head's own z.
    """

    weights: Float[ndarray, "n_q n_k"]
    effective: Float[ndarray, "n_q n_k"]
    free: Int[ndarray, " n_q"]
    proof: Proof


def effective_attention(trace: Trace, site: str, head: int) -> EffectiveAttention:
    """The effective attention of one head, in float64.

    Raises:
        TraceError: no such site or head; a layer without softmax.
    """
    record = trace[site]
    record.check(head)
    weights, v, z = float64(record.pattern(head)), float64(record.v[record.kv_head(head)]), float64(record.z(head))
    seen = np.asarray(record.reason(head).cpu() == 0)
    rows, which = np.unique(seen, axis=0, return_inverse=True)
    effective, free = np.zeros_like(weights), np.zeros(len(weights), dtype=np.int64)
    size, smallest = max(1, _AT_ONCE // v.size), 4 * torch.finfo(torch.float32).eps
    for first in range(0, len(rows), size):
        u, s, _ = np.linalg.svd(rows[first : first + size, :, None] * v, full_matrices=False)  # u [rows, n_k, _]
        u = u * (s > smallest * s.max(axis=-1, keepdims=True))[:, None]  # the columns that span those of V
        for at, basis in enumerate(u, start=first):
            effective[which == at] = weights[which == at] @ basis @ basis.T
            free[which == at] = rows[at].sum() - np.count_nonzero(basis.any(axis=0))
    size_of_sum = np.abs(effective) @ np.abs(v)
    proof = Proof.compare(N_("the head's own z"), effective @ v, z, terms=size_of_sum, dtype=record.v.dtype)
    return EffectiveAttention(weights, effective, free, proof)
