"""The encoder and the decoder: where queries and keys come from in the three kinds of attention, and what the memory is.

    Q_l = X_l W_Q^l,  K_l = M W_K^l,  V_l = M W_V^l        (with their biases; X_l normalised first in a pre-norm model)

X_l is the decoder's row after its self-attention, M the encoder's output, the same for every decoder layer l.

Source: Vaswani et al. 2017, section 3.2.3.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import torch
from jaxtyping import Bool, Float, UInt8
from numpy import ndarray
from torch import Tensor

from vizformer.checkpoints import AnyCheckpoint
from vizformer.explain.arrays import float64, softmax
from vizformer.explain.attention_layer import worse
from vizformer.explain.step import Proof
from vizformer.explain.sublayer import bias_of, find_site, in_words
from vizformer.messages import N_
from vizformer.model import AttentionRecord, Mask, Reason
from vizformer.model.forward_pass import ForwardPass
from vizformer.model.masks import total_bias
from vizformer.model.records import mix
from vizformer.model.trace import Trace

MEMORY = "encoder.final"


@dataclass(frozen=True)
class Masked:
    """softmax(S + M) of one head, in float64 from the q and k that the model used.

    Attributes:
        scores: S = q k^T / sqrt(d_head) (plus the position bias, where the model has one), before the mask.
        bias: M, 0 or -inf.
        weights: rows sum to 1; a row that is blocked as a whole is 0.
        reasons: why a cell is blocked (`vizformer.model.Reason`), 0 where it is not.
        own: whether the model itself ran with this mask.
        proof: weights @ v against z: the model's own where `own`, else a fused call with this mask.
    """

    scores: Float[ndarray, "n_q n_k"]
    bias: Float[ndarray, "n_q n_k"]
    weights: Float[ndarray, "n_q n_k"]
    reasons: UInt8[ndarray, "n_q n_k"]
    own: bool
    proof: Proof

    @property
    def blocked(self) -> Bool[ndarray, "n_q n_k"]:
        """Which cells are blocked, for any reason."""
        return self.reasons > 0

    @property
    def n_open(self) -> int:
        """The number of cells that are not blocked."""
        return int(self.reasons.size - np.count_nonzero(self.reasons))

    @property
    def blind(self) -> tuple[int, ...]:
        """The queries whose keys are all blocked."""
        return tuple(np.flatnonzero(self.blocked.all(axis=1)).tolist())

    @property
    def padding_keys(self) -> tuple[bool, ...]:
        """For each key, whether it is blocked as padding."""
        return tuple((self.reasons == Reason.PADDING).any(axis=0).tolist())

    def telling_row(self, unused: Sequence[int] = ()) -> tuple[int, tuple[int, ...]] | None:
        """The query in which most keys have a share, and the keys that it sees, the largest score first.

        Where it can be chosen, the query sees at least two keys, and not all of them.  `unused` are queries that are
        not to be chosen.  None where no other query sees a key.
        """
        n_seen = (~self.blocked).sum(axis=1)
        read = [i for i in range(len(n_seen)) if i not in unused and n_seen[i] > 0]
        rows = [i for i in read if 2 <= n_seen[i] < self.blocked.shape[1]] or read
        if not rows:
            return None
        i = min(rows, key=lambda row: float(self.weights[row].max()))
        seen = np.flatnonzero(~self.blocked[i])
        return i, tuple(seen[np.argsort(-self.scores[i, seen], kind="stable")].tolist())


@dataclass(frozen=True)
class Attended:
    site: str  # the name of the attention site
    # asks, answers: the points of the residual stream from which queries, and keys and values, are computed
    asks: str
    answers: str
    scores: tuple[int, int, int]  # [n_heads, n_q, n_k]
    d_head: int  # the width of a query and a key
    blocked: dict[Reason, int]  # the number of blocked cells of a head, by reason
    # all q, k and v recomputed from these rows, and z from them in float64, against the recorded ones
    proof: Proof


@torch.inference_mode()
def attended(checkpoint: AnyCheckpoint, trace: Trace, sites: Iterable[str]) -> tuple[Attended, ...]:
    """The origin of queries and of keys at each of the sites."""
    found = []
    for site in sites:
        at, record = find_site(checkpoint, trace, site), trace[site]
        anew = _looked(checkpoint, trace, site, trace.residual(MEMORY) if at.is_cross else None)
        anchor = N_("q, k and v recorded in {place}", place=in_words(site))
        proofs = [Proof.compare(anchor, float64(getattr(anew, one)), getattr(record, one)) for one in ("q", "k", "v")]
        proofs += [masked_attention(record, head).proof for head in range(record.n_heads)]
        proof = reduce(worse, proofs)
        reasons = record.reason(0).cpu().numpy()
        values, counts = np.unique(reasons[reasons > 0], return_counts=True)
        blocked = {Reason(value): int(count) for value, count in zip(values.tolist(), counts.tolist(), strict=True)}
        shape = (record.n_heads, record.q.shape[1], record.k.shape[1])
        found.append(Attended(site, at.before, at.source, shape, record.q.shape[2], blocked, proof))
    return tuple(found)


@dataclass(frozen=True)
class MemoryReader:
    """The keys and values of one decoder layer, and how they follow from the encoder's output."""

    layer: int  # the index of the decoder layer
    # whether its keys and values, recomputed from the encoder's output alone, equal those of the trace bit for bit
    same: bool
    # point of the encoder -> difference between the keys computed from there and those of the trace: the largest
    # |difference|
    distances: dict[str, float]
    apart: float  # largest |difference| between its keys and those of layer 0
    proof: Proof  # q recomputed from the decoder's row after the self-attention


def encoder_outputs(trace: Trace) -> tuple[str, ...]:
    """The outputs of the encoder's layers, the last one as the decoder gets it (after the final norm, if there is one)."""
    posts = [name for name in trace.residuals if name.startswith("encoder.") and name.endswith(".post")]
    return (*posts[:-1], MEMORY)


@torch.inference_mode()
def memory_readers(checkpoint: AnyCheckpoint, trace: Trace) -> tuple[MemoryReader, ...]:
    """One `MemoryReader` per decoder layer: each has its own W_K and W_V, and all read the same memory."""
    sites = [name for name in trace.sites if name.endswith(".cross")] or ["decoder.0.cross"]
    first = trace[sites[0]]
    found = []
    for layer, name in enumerate(sites):
        record = trace[name]
        again = {output: _looked(checkpoint, trace, name, trace.residual(output)) for output in encoder_outputs(trace)}
        own = again[MEMORY]
        place = in_words(f"decoder.{layer}.mid_self")
        proof = Proof.compare(N_("q, computed anew from {place}", place=place), float64(own.q), record.q)
        found.append(
            MemoryReader(
                layer,
                torch.equal(own.k, record.k) and torch.equal(own.v, record.v),
                {output: float((other.k - record.k).abs().max()) for output, other in again.items()},
                float((record.k - first.k).abs().max()),
                proof,
            )
        )
    return tuple(found)


def _looked(checkpoint: AnyCheckpoint, trace: Trace, site: str, memory: Tensor | None) -> AttentionRecord:
    """The attention of a site, run again over `memory`; None: over the rows of its own queries, as in self-attention."""
    at, anew = find_site(checkpoint, trace, site), Trace()
    rows = trace.residual(at.before)[None]
    rows = at.around.enter(rows)
    run = ForwardPass(rotation=checkpoint.model.rotations(rows.shape[1]) if memory is None else None, trace=anew)
    at.attention(rows, rows if memory is None else memory[None], None, run, site)
    return anew[site]


@dataclass(frozen=True)
class EmptyMemory:
    """The output of cross-attention over a memory of zeros.

    K = b_K in every place, so that all scores of a row are equal and all weights 1 / n; V = b_V, so that
    z = b_V and out = W_O b_V + b_O in every row, whatever is asked (0 in a model without biases).
    """

    weight: float  # 1 / n
    out: Float[ndarray, " d_model"]  # the row added to every row of the decoder
    proof: Proof  # `out` for all rows against the layer's own attention over zeros


@torch.inference_mode()
def empty_memory(checkpoint: AnyCheckpoint, trace: Trace, layer: int) -> EmptyMemory:
    """The cross-attention of a decoder layer over a memory of zeros."""
    site = f"decoder.{layer}.cross"
    at, memory = find_site(checkpoint, trace, site), trace.residual(MEMORY)
    attention = at.attention
    value = bias_of(attention.W_V).reshape(attention.n_kv_heads, -1)
    z = value.repeat(attention.n_heads // attention.n_kv_heads, 0).reshape(-1)
    out = float64(attention.W_O.weight) @ z + bias_of(attention.W_O)
    rows = trace.residual(at.before)[None]
    rows = at.around.enter(rows)
    computed = attention(rows, torch.zeros_like(memory)[None], None, ForwardPass(), site)[0]  # [n_target, d_model]
    anchor = N_("what the model's own attention gives for a memory of zeros")
    proof = Proof.compare(anchor, np.broadcast_to(out, computed.shape), computed)
    return EmptyMemory(1 / len(memory), out, proof)


def add_and_norms(trace: Trace, layer: int) -> Sequence[str]:
    """The points of the residual stream of a decoder layer after each of its add & norms."""
    names = (f"decoder.{layer}.{part}" for part in ("mid_self", "mid", "mid_cross", "post"))
    return tuple(name for name in names if name in trace.residuals)


# A mask laid over the scores of a head, proved by an independent computation.
def masked_attention(record: AttentionRecord, head: int, mask: Mask | None = None) -> Masked:
    """The attention of a head with `mask` in place of its own mask; None keeps its own."""
    q, k, v = record.q[head], record.k[record.kv_head(head)], record.v[record.kv_head(head)]
    shape = (q.shape[0], k.shape[0])
    position = None if record.position_bias is None else record.position_bias[head]
    scores = float64(record.scoring.bent(q.double() @ k.double().T * record.scale))
    scores = scores if position is None else scores + float64(position)
    own = record.reason(head).cpu().numpy()
    reasons = own if mask is None else mask.reason[0, 0].expand(shape).cpu().numpy()
    bias = np.where(reasons > 0, -np.inf, 0.0)
    weights = softmax(scores + bias)
    same = bool(np.array_equal(reasons > 0, own > 0))
    if same:
        anchor, z = N_("z, as the model computed it"), record.z(head)
    else:
        anchor = N_("z of F.scaled_dot_product_attention with this mask, from the model's q, k and v")
        added = total_bias(position, torch.from_numpy(bias).to(q.device, q.dtype))
        assert added is not None  # there is a mask
        z = mix(q[None, None], k[None, None], v[None, None], added[None, None].to(q.dtype), record.scoring)[0, 0]
    values = float64(v)
    proof = Proof.compare(anchor, weights @ values, z, terms=weights @ np.abs(values))
    return Masked(scores, bias, weights, reasons, same, proof)
