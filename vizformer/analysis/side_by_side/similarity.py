"""How alike an encoder of sentences finds two texts: the cosine of their pooled vectors, and what it is a sum of.

With x_i the last rows of the first text (n tokens), y_j those of the second (m tokens):

    mean             u = sum_i x_i / n
    cls              u = x_0
    max              u_d = max over i of x_i[d]
    mean_sqrt_len    u = sum_i x_i / sqrt(n)

    cosine = u . v / (|u| |v|)

Each u is a sum of what the rows give to it, u = sum_i w_i * x_i: w_i is 1/n, or 1 where a row is taken or is the largest
and 0 elsewhere.  So is the cosine, twice over:

    pair of tokens   (w_i * x_i) . (w'_j * y_j) / (|u| |v|)                         [n, m]
    part of a model  sum_i g_i . (what the part has written into row i), where g_i = w_i * v / (|u| |v|) comes back
                     through the norms, with what these divide by held as it was (`attribution.direct`)

Source: Reimers & Gurevych 2019, "Sentence-BERT", section 3 (pooling, cosine).
"""

from dataclasses import dataclass
from typing import get_args

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from vizformer.analysis.attribution.backward import Backward
from vizformer.analysis.attribution.lens import predicting_stack
from vizformer.analysis.attribution.terms import Term
from vizformer.analysis.side_by_side.runs import TwoRuns
from vizformer.checkpoints.hugging_face.sentence_vectors import Pooling
from vizformer.errors import TraceError
from vizformer.explain.arrays import float64
from vizformer.explain.step import Proof
from vizformer.messages import N_

POOLINGS: tuple[Pooling, ...] = get_args(Pooling)


@dataclass(frozen=True)
class TextSimilarity:
    """The similarity of two texts, and what it is a sum of.

    Attributes:
        cosine: of the two vectors, in float64.
        pairs: the share of each pair of tokens; they sum to the cosine.
        proof: the sum of the pairs against the cosine that the model's own tensors give.
    """

    pooling: Pooling
    cosine: float
    lengths: tuple[float, float]
    pairs: Float[ndarray, "n m"]
    proof: Proof


@dataclass(frozen=True)
class SimilarityTerms:
    """What the parts of a model have written into one of the texts, along the direction of the other: the cosine."""

    terms: tuple[Term, ...]
    proof: Proof

    @property
    def sorted(self) -> tuple[Term, ...]:
        """The terms, the largest (above or below 0) first."""
        return tuple(sorted(self.terms, key=lambda term: -abs(term.value)))


def text_similarity(runs: TwoRuns, pooling: Pooling = "mean") -> TextSimilarity:
    """The cosine of the pooled vectors, pair by pair of tokens.

    Raises:
        TraceError: vectors of different widths.
    """
    rows = [_pooled_rows(_last_rows(runs, which), pooling) for which in (0, 1)]
    if rows[0].shape[1] != rows[1].shape[1]:
        raise TraceError(
            "The vectors have {first} and {second} numbers, and cannot be compared. Choose one model for both texts.",
            first=rows[0].shape[1],
            second=rows[1].shape[1],
        )
    u, v = (one.sum(0) for one in rows)
    lengths = float(np.linalg.norm(u)), float(np.linalg.norm(v))
    pairs: ndarray = rows[0] @ rows[1].T / max(lengths[0] * lengths[1], np.finfo(float).tiny)
    own, other = (pooled(_last_rows(runs, which), pooling) for which in (0, 1))
    cosine = torch.cosine_similarity(own, other, dim=0)
    proof = Proof.compare(N_("the cosine of the model's own rows"), np.array([pairs.sum()]), cosine.reshape(1))
    return TextSimilarity(pooling, float(pairs.sum()), lengths, pairs, proof)


def similarity_terms(runs: TwoRuns, pooling: Pooling = "mean", *, second: bool = False) -> SimilarityTerms:
    """The cosine, part by part of the model that has read the first text (or the second)."""
    found = text_similarity(runs, pooling)
    mine, its = (_last_rows(runs, which) for which in ((1, 0) if second else (0, 1)))
    direction = _pooled_rows(its, pooling).sum(0) / max(found.lengths[0] * found.lengths[1], np.finfo(float).tiny)
    checkpoint, trace = (runs.second, runs.other) if second else (runs.first, runs.trace)
    back = Backward(checkpoint, trace, slice(0, len(mine)), _weights(mine, pooling) * direction)
    back.stack()
    terms = tuple(reversed(back.terms))
    total = np.array([sum(term.value for term in terms)])
    size = max(1.0, float(np.sqrt(back.squares)))
    proof = Proof.compare(
        N_("the cosine of the model's own rows"), total, np.array([found.cosine]), terms=size, dtype=mine.dtype
    )
    return SimilarityTerms(terms, proof)


def _last_rows(runs: TwoRuns, which: int) -> Float[Tensor, "n d_model"]:
    checkpoint, trace = ((runs.first, runs.trace), (runs.second, runs.other))[which]
    return trace.residual(f"{predicting_stack(checkpoint)}.final")


def _weights(rows: Float[Tensor, "n d_model"], pooling: Pooling) -> Float[ndarray, "n d_model"]:
    """w: what each number of each row is taken by."""
    n, width = rows.shape
    if pooling == "max":
        largest = rows.argmax(0).cpu().numpy()
        return (np.arange(n)[:, None] == largest).astype(float)
    weights = np.zeros((n, width))
    if pooling == "cls":
        weights[0] = 1.0
    else:
        weights[:] = 1.0 / (n if pooling == "mean" else np.sqrt(n))
    return weights


def _pooled_rows(rows: Float[Tensor, "n d_model"], pooling: Pooling) -> Float[ndarray, "n d_model"]:
    """What each row gives to the pooled vector: they sum to it."""
    return _weights(rows, pooling) * float64(rows)


def pooled(rows: Float[Tensor, "n d_model"], pooling: Pooling) -> Float[Tensor, " d_model"]:
    """The pooled vector in the model's own precision, in one call of torch."""
    if pooling == "cls":
        return rows[0]
    if pooling == "max":
        return rows.amax(0)
    return rows.mean(0) if pooling == "mean" else rows.sum(0) / len(rows) ** 0.5
