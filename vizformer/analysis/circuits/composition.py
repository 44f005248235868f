"""Which head reads what which earlier head writes: composition scores against a random baseline.

With M = W_V W_O of the earlier head and B of the later one, the share that gets through,

    |M B|_F / (|M|_F |B|_F),   B = W_Q W_K^T for Q-, W_K W_Q^T for K-, W_V W_O for V-composition

Matrices of random numbers have about 1 / sqrt(d_model); how far a pair stands above that is told in deviations of such
random pairs.

Source: Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits", "Understanding Layer Interactions".
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from vizformer.analysis.circuits.weights import HeadWeights, head_weights, predicting_kind
from vizformer.analysis.heads import Kind
from vizformer.checkpoints import Checkpoint

Way = Literal["Q", "K", "V"]
WAYS: tuple[Way, ...] = get_args(Way)
SAMPLES = 32  # random pairs of heads
CLEAR = 4.0
"""Deviations above the random mean from which a pair is said to compose."""


@dataclass(frozen=True)
class Composition:
    """The scores of all pairs of heads of a stack.

    Attributes:
        scores: [earlier head, later head] for each way, heads numbered layer * n_heads + head; NaN where the second is in
            no later layer, and where a head is 0.
        mean, deviation: of the same of random heads of these shapes.
        n_heads: of a layer.
    """

    scores: dict[Way, Float[ndarray, "heads heads"]]
    mean: float
    deviation: float
    n_heads: int

    def excess(self, way: Way) -> Float[ndarray, "heads heads"]:
        """How many deviations of random pairs the scores stand above their mean."""
        found: Float[ndarray, "heads heads"] = (self.scores[way] - self.mean) / self.deviation
        return found

    def clear(self, way: Way) -> list[tuple[tuple[int, int], tuple[int, int], float]]:
        """The pairs ((layer, head) of the earlier one, of the later one, excess) that clearly compose, clearest first."""
        excess = self.excess(way)
        pairs = np.argwhere(np.nan_to_num(excess, nan=-np.inf) > CLEAR)
        found = [
            (divmod(int(a), self.n_heads), divmod(int(b), self.n_heads), float(excess[a, b])) for a, b in pairs.tolist()
        ]
        return sorted(found, key=lambda pair: -pair[2])


def compositions(checkpoint: Checkpoint, kind: Kind | None = None) -> Composition:
    """All pairs of heads of one stack's self-attention; of the one that predicts if `kind` is not given.

    Raises:
        TraceError: there is no such self-attention.
    """
    kind, config = kind or predicting_kind(checkpoint), checkpoint.model.config
    layers = config.n_encoder_layers if kind == "encoder" else config.n_decoder_layers
    heads = [head_weights(checkpoint, kind, *place) for place in np.ndindex(layers, config.n_heads)]
    triangles = [_triangles(one) for one in heads]
    count = len(heads)
    scores: dict[Way, ndarray] = {way: np.full((count, count), np.nan) for way in WAYS}
    for way in WAYS:
        reading = [_reading(own, r, way) for own, r in zip(heads, triangles, strict=True)]
        for first in range(count - config.n_heads):  # the last layer has none after it
            later = range((heads[first].layer + 1) * config.n_heads, count)
            X, R_X, R_Y = (torch.stack([reading[head][part] for head in later]) for part in range(3))
            scores[way][first, list(later)] = _scores(heads[first], triangles[first], X, R_X, R_Y).numpy()
    return Composition(scores, *_random(heads[0]), config.n_heads)


class _Triangles(NamedTuple):
    """Of the QR decompositions of W_Q, W_K, W_V and W_O^T, [d_head, d_head]: norms of products hang on them alone."""

    Q: Tensor
    K: Tensor
    V: Tensor
    O: Tensor  # noqa: E741


def _triangles(own: HeadWeights) -> _Triangles:
    return _Triangles(*(torch.linalg.qr(one).R for one in (own.W_Q, own.W_K, own.W_V, own.W_O.T)))


def _reading(own: HeadWeights, r: _Triangles, way: Way) -> tuple[Tensor, Tensor, Tensor]:
    """X, and the triangles of X and Y, of B = X Y^T."""
    if way == "Q":
        return own.W_Q, r.Q, r.K
    return (own.W_K, r.K, r.Q) if way == "K" else (own.W_V, r.V, r.O)


def _scores(
    first: HeadWeights,
    r: _Triangles,
    X: Float[Tensor, "heads d_model d_head"],
    R_X: Float[Tensor, "heads d_head d_head"],
    R_Y: Float[Tensor, "heads d_head d_head"],
) -> Float[Tensor, " heads"]:
    """|M B| / (|M| |B|) = |R_V (W_O X) R_Y^T| / (|R_V R_O^T| |R_X R_Y^T|); NaN where one of them is 0."""
    across = R_Y.transpose(1, 2)
    through = torch.linalg.matrix_norm(r.V @ (first.W_O @ X) @ across)
    whole = torch.linalg.matrix_norm(r.V @ r.O.T) * torch.linalg.matrix_norm(R_X @ across)
    return torch.where(whole > 0, through / whole, torch.nan)


def _random(like: HeadWeights) -> tuple[float, float]:
    """Mean and deviation of the score of random heads of the same shapes; the same numbers every time."""
    generator = torch.Generator().manual_seed(0)
    d_model, d_head = like.W_Q.shape
    found = []
    for _ in range(SAMPLES):
        wide = torch.randn(8, d_model, d_head, generator=generator, dtype=torch.float64)
        first, second = (HeadWeights(0, 0, q, k, v, o.T, 1.0) for q, k, v, o in (wide[:4], wide[4:]))
        X, R_X, R_Y = _reading(second, _triangles(second), "Q")
        found.append(float(_scores(first, _triangles(first), X[None], R_X[None], R_Y[None])))
    return float(np.mean(found)), float(np.std(found))
