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
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from vizformer.checkpoints import AnyCheckpoint
from vizformer.explain.arrays import float64
from vizformer.explain.layer_projections import worse
from vizformer.explain.mask_over_head import masked_attention
from vizformer.explain.site import find_site
from vizformer.explain.site_words import in_words
from vizformer.explain.step import Proof
from vizformer.explain.sublayer import bias_of
from vizformer.messages import N_
from vizformer.model import AttentionRecord, Reason
from vizformer.model.forward_pass import AttentionCall
from vizformer.model.trace import Trace

MEMORY = "encoder.final"


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
    rows = rows if at.around.before is None else at.around.before(rows)
    rotation = checkpoint.model.rotations(rows.shape[1]) if memory is None else None
    at.attention(rows, rows if memory is None else memory[None], AttentionCall(site, rotation=rotation, trace=anew))
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
    rows = rows if at.around.before is None else at.around.before(rows)
    computed = attention(rows, torch.zeros_like(memory)[None], AttentionCall(site))[0]  # [n_target, d_model]
    anchor = N_("what the model's own attention gives for a memory of zeros")
    proof = Proof.compare(anchor, np.broadcast_to(out, computed.shape), computed)
    return EmptyMemory(1 / len(memory), out, proof)


def add_and_norms(trace: Trace, layer: int) -> Sequence[str]:
    """The points of the residual stream of a decoder layer after each of its add & norms."""
    names = (f"decoder.{layer}.{part}" for part in ("mid_self", "mid", "mid_cross", "post"))
    return tuple(name for name in names if name in trace.residuals)
