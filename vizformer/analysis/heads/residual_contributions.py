"""What each head adds to the residual stream, and what each key adds through a head."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from vizformer.checkpoints import AnyCheckpoint
from vizformer.explain.arrays import float64, stored
from vizformer.explain.norms import added_sizes, through
from vizformer.explain.proof_anchors import recorded as recorded_at
from vizformer.explain.site import Site, find_site
from vizformer.explain.step import Proof
from vizformer.explain.sublayer import linear_inputs
from vizformer.model.input_check import row_at
from vizformer.model.trace import Trace


@dataclass(frozen=True)
class HeadSlices:
    """The vectors of one query position on their way through a sublayer of attention."""

    x: Float[ndarray, " d_model"]  # the row that the projections read, all d_model numbers of it in every head
    q: Float[ndarray, " width"]  # the query; head h owns the columns h * d_head to (h + 1) * d_head
    # k, v: key and value at the query's own position; key/value head g owns the columns from g * d_head on.  None in
    # cross-attention, where keys and values belong to other positions
    k: Float[ndarray, " kv_width"] | None
    v: Float[ndarray, " v_width"] | None
    z: Float[ndarray, " z_width"]  # what the heads bring back, one after the other
    out: Float[ndarray, " d_model"]  # z W_O + b_O: the sublayer's output, in which no column belongs to a head


@dataclass(frozen=True)
class Contributions:
    """The output of an attention sublayer at one position, split into heads: out = sum_h z_h W_O^h + b_O."""

    slices: HeadSlices
    parts: Float[ndarray, "n_heads d_model"]  # z_h W_O^h of every head
    bias: Float[ndarray, " d_model"] | None
    norms: Float[ndarray, " n_heads"]
    bias_norm: float
    # part . out / |out|^2: how far each part goes in the direction of the whole; with the bias's share they sum to 1,
    # and a part that works against the others has a negative one
    shares: Float[ndarray, " n_heads"]
    bias_share: float
    proof: Proof  # the sum, brought to the next point of the residual stream, against what the model recorded there

    def without(self, head: int) -> Float[ndarray, " d_model"]:
        """What the sublayer would add if z of this head were 0: out - z_h W_O^h."""
        return self.slices.out - self.parts[head]


def contributions(checkpoint: AnyCheckpoint, trace: Trace, site: str, query: int) -> Contributions:
    """The parts of one sublayer's output at position `query`, in float64, from the model's own z.

    Concatenating the heads and multiplying by W_O is the same as multiplying each head by its own rows of W_O and
    adding up: [z_0; ...; z_H] W_O = sum_h z_h W_O^h.

    Source: Vaswani et al. 2017, section 3.2.2; Elhage et al. 2021 for the sum over heads.
    """
    found, record = find_site(checkpoint, trace, site), trace[site]
    query = row_at(query, record.q.shape[1])
    d_head = found.attention.d_head
    z = np.stack([float64(record.z(head)[query]) for head in range(record.n_heads)])  # [n_heads, d_head]
    W_O, b_O = found.attention.W_O.weight, found.attention.W_O.bias
    rows = float64(W_O).T.reshape(record.n_heads, d_head, -1)  # [n_heads, d_head, d_model]
    parts = np.einsum("hd,hdm->hm", z, rows)
    bias = None if b_O is None else float64(b_O)
    out: Float[ndarray, " d_model"] = parts.sum(0) if bias is None else parts.sum(0) + bias
    square = float(out @ out) or 1.0
    own = None if found.is_cross else (float64(record.k[:, query]).ravel(), float64(record.v[:, query]).ravel())
    k, v = own or (None, None)
    slices = HeadSlices(_input(found, trace, query), float64(record.q[:, query]).ravel(), k, v, z.ravel(), out)
    return Contributions(
        slices,
        parts,
        bias,
        np.linalg.norm(parts, axis=1),
        0.0 if bias is None else float(np.linalg.norm(bias)),
        parts @ out / square,
        0.0 if bias is None else float(bias @ out) / square,
        _proof(found, trace, query, out),
    )


def output_matrix(checkpoint: AnyCheckpoint, trace: Trace, site: str) -> dict[str, Tensor]:
    """W_O as in z W_O, and b_O where the model has one, by the names that code has for them."""
    return linear_inputs(find_site(checkpoint, trace, site).attention.W_O, "O")


@dataclass(frozen=True)
class KeyContributions:
    """The contribution of every key through one head, for one query."""

    weights: Float[ndarray, " n_k"]  # the attention weights a_j
    norms: Float[ndarray, " n_k"]  # |a_j v_j W_O^h|: how long the vector is that arrives from key j

    @property
    def value_norms(self) -> Float[ndarray, " n_k"]:
        """|v_j W_O^h|, the length before it is weighted; 0 where nothing of it arrives."""
        found: Float[ndarray, " n_k"] = np.zeros_like(self.norms)
        np.divide(self.norms, self.weights, out=found, where=self.weights > 0)
        return found

    @property
    def longest(self) -> int:
        """The key whose contribution vector is longest."""
        return int(self.norms.argmax())

    def leading(self, count: int) -> list[int]:
        """The `count` keys with the largest weights, the largest first."""
        return [int(key) for key in np.argsort(-self.weights, kind="stable")[:count]]


def key_contributions(checkpoint: AnyCheckpoint, trace: Trace, site: str, head: int, query: int) -> KeyContributions:
    """Weights beside the lengths of what they weigh: a large weight on a short vector moves little.

    Source: Kobayashi et al. 2020, "Attention is Not Only a Weight".
    """
    found, record = find_site(checkpoint, trace, site), trace[site]
    query = row_at(query, record.q.shape[1])
    weights = float64(record.pattern(head)[query])
    own = slice(head * found.attention.d_head, (head + 1) * found.attention.d_head)
    arriving = float64(record.v[record.kv_head(head)]) @ float64(found.attention.W_O.weight[:, own]).T
    return KeyContributions(weights, weights * np.linalg.norm(arriving, axis=1))


def _input(at: Site, trace: Trace, query: int) -> Float[ndarray, " d_model"]:
    return through(float64(trace.residual(at.before)[query]), at.around.before)


def _proof(at: Site, trace: Trace, query: int, out: Float[ndarray, " d_model"]) -> Proof:
    """The sublayer's output is not recorded; the residual stream before and after it is."""
    recorded = trace.residual(at.after)[query]
    before, dtype = float64(trace.residual(at.before)[query]), recorded.dtype
    bringing = stored(out, dtype)
    after = through(stored(at.around.onto(before, bringing), dtype), at.around.after)
    terms = added_sizes(at.around, before, bringing)
    return Proof.compare(recorded_at(at.after), after, recorded, direct=False, terms=terms)
