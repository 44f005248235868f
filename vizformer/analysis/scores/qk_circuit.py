"""Why attention has a matrix for queries and another one for keys: with one, the scores would be symmetric."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray

from vizformer.checkpoints import AnyCheckpoint
from vizformer.explain.arrays import float64
from vizformer.explain.attention_numbers import HeadNumbers, head_numbers
from vizformer.explain.step import Proof, sizes
from vizformer.explain.sublayer import in_words
from vizformer.messages import N_
from vizformer.model.head_weights import head_projection
from vizformer.model.trace import Trace


@dataclass(frozen=True)
class ScoreForms:
    """The scores of one head of self-attention in three ways, before mask and position bias, / sqrt(width).

    Attributes:
        identity: W_Q = W_K = I: x_i . x_j / sqrt(d_model).
        shared: W_K = W_Q, so that k_j = q_j: q_i . q_j / sqrt(d_head).
        learned: the model's own q_i . k_j / sqrt(d_head).
    """

    identity: Float[ndarray, "n n"]
    shared: Float[ndarray, "n n"]
    learned: Float[ndarray, "n n"]


def score_forms(checkpoint: AnyCheckpoint, trace: Trace, site: str, head: int) -> ScoreForms:
    """The scores of the three choices of matrices for the same input rows (after the norm, in a pre-norm model).

    With rotary positions q and k are turned by their own position; q_i . q_j stays symmetric all the same.

    Raises:
        TraceError: no such site or head; keys of another layer.
        ValueError: cross-attention, whose queries and keys are different rows.
    """
    o = _self_attention_head(checkpoint, trace, site, head)
    x, record = o.all.source, o.record
    learned = float64(record.content_scores(head))
    q = float64(record.q[head])
    return ScoreForms(x @ x.T / np.sqrt(x.shape[1]), q @ q.T * record.scale, learned)


@dataclass(frozen=True)
class Asymmetry:
    """How far a square matrix is from S = S^T.

    Attributes:
        largest: the largest |S_ij - S_ji|.
        pair: (i, j) where it is, S_ij being the larger of the two.
        share: |(S - S^T) / 2|^2 / |S|^2, Frobenius norms: 0 for a symmetric matrix, 1 for an antisymmetric one.  The
            symmetric and the antisymmetric part of S are orthogonal, so that their squares add up to |S|^2: a share.
    """

    largest: float
    pair: tuple[int, int]
    share: float


def asymmetry(scores: Float[ndarray, "n n"]) -> Asymmetry:
    """Compares a square matrix S with its transpose; see `Asymmetry`."""
    difference = scores - scores.T
    i, j = np.unravel_index(int(difference.argmax()), difference.shape)
    whole = float(np.square(scores).sum())
    share = float(np.square(difference / 2).sum()) / whole if whole > 0 else 0.0
    return Asymmetry(float(difference.max()), (int(i), int(j)), share)


@dataclass(frozen=True)
class Bilinear:
    """W_Q^h (W_K^h)^T of a head: all that the scores know of the two matrices, where these have no biases.

    Attributes:
        rank: how many of its singular values are not 0 (to float64 accuracy).
        bound: d_head, above which the rank cannot be.
        singular: the singular values, largest first.
        proof: x_i M x_j / sqrt(d_head) (with the biases' terms) against the model's own scores: over all pairs; with
            rotary positions, where every distance has an M of its own, on the diagonal.  None where a norm stands
            between the matrices and the scores.
        biased: whether q or k has a bias, which meets the other side's matrix alone.
    """

    rank: int
    bound: int
    singular: Float[ndarray, " d_head"]
    proof: Proof | None
    biased: bool = False


def bilinear(checkpoint: AnyCheckpoint, trace: Trace, site: str, head: int) -> Bilinear:
    """(x W_Q + b_Q)(y W_K + b_K)^T = x M y^T + x W_Q b_K^T + b_Q W_K^T y^T + b_Q b_K^T, with M = W_Q W_K^T.

    Raises:
        TraceError: no such site or head; keys of another layer.
        ValueError: cross-attention.

    Source: Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits" (the QK circuit).
    """
    o = _self_attention_head(checkpoint, trace, site, head)
    record, d_head, biased = o.record, o.d_head, checkpoint.model.config.qkv_bias
    # In torch, which keeps to the threads it was given.
    (W_Q, b_Q), (W_K, b_K) = (
        (weight.cpu().double(), torch.zeros(d_head).double() if bias is None else bias.cpu().double())
        for weight, bias in (head_projection(o.site.attention, name, head) for name in "qk")
    )
    # The singular values of W_Q W_K^T are those of R_Q R_K^T, a d_head x d_head matrix.
    R_Q, R_K = torch.linalg.qr(W_Q).R, torch.linalg.qr(W_K).R
    singular = float64(torch.linalg.svdvals(R_Q @ R_K.T))
    rank = int((singular > singular[0] * max(W_Q.shape) * np.finfo(np.float64).eps).sum()) if singular[0] > 0 else 0
    if o.site.attention.q_norm is not None:
        return Bilinear(rank, d_head, singular, None, biased)
    x = torch.from_numpy(o.all.source)
    form = x @ (W_Q @ W_K.T) @ x.T + (x @ (W_Q @ b_K))[:, None] + (x @ (W_K @ b_Q))[None, :] + b_Q @ b_K
    found, expected = float64(form) * record.scale, float64(record.content_scores(head))
    q, k = float64(record.q[head]), float64(record.k[record.kv_head(head)])
    terms = sizes(q, k.T) * record.scale
    if checkpoint.model.config.positions == "rope":
        found, expected, terms = (np.diagonal(scores) for scores in (found, expected, terms))
    anchor = N_("the scores of {place}, head {head}", place=in_words(site), head=head)
    return Bilinear(
        rank, d_head, singular, Proof.compare(anchor, found, expected, terms=terms, dtype=record.q.dtype), biased
    )


def _self_attention_head(checkpoint: AnyCheckpoint, trace: Trace, site: str, head: int) -> HeadNumbers:
    found = head_numbers(checkpoint, trace, site, head, 0)
    if found.site.is_cross:
        raise ValueError(f"{site}: queries and keys are different rows there, nothing could be symmetric")
    return found
