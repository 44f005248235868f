"""Which head reads what which earlier head writes: composition scores, and which of them are more than chance.

With M = W_V W_O of the earlier head and B of the later one, the share that gets through,

    |M B|_F / (|M|_F |B|_F),   B = W_Q W_K^T for Q-, W_K W_Q^T for K-, W_V W_O for V-composition

A pair is said to compose where two things hold:

- Chance would hardly do it.  The same two matrices, one of them turned at random, reach such a score so seldom (`chance`)
  that among all pairs and ways tested even one such is expected in fewer than LEVEL of all models: the probability times
  the number of tests is below LEVEL (Bonferroni).
- Heads that cannot compose do not do it.  All heads of a model share some directions that much is written to and read
  from, so that also a later head seems to write for an earlier one, which never reads it.  As in a search with decoys,
  these pairs, equally many, say how many of those that stand so far above chance are false: at most FALSE of them.

Source: Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits", "Understanding Layer Interactions", for the
score; Dunn 1961, "Multiple Comparisons Among Means", for the first; Elias and Gygi 2007, "Target-decoy Search Strategy for
Increased Confidence in Large-scale Protein Identifications by Mass Spectrometry", for the second.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy import ndarray
from torch import Tensor

from vizformer.analysis.circuits.weights import HeadWeights, known_heads, predicting_kind
from vizformer.analysis.heads.maps import Kind
from vizformer.checkpoints import AnyCheckpoint

Way = Literal["Q", "K", "V"]
WAYS: tuple[Way, ...] = get_args(Way)
LEVEL = 0.01  # in how many models without any composition a pair may be said to compose by chance
FALSE = 0.05  # how many of the pairs that are said to compose may be false, by the pairs that cannot compose
LOOKED_AT = 3.0
"""The z-score from which on the p-value under chance is computed.

The bound is nowhere below exp(-z^2 / 2) for z deviations, that of a Gaussian number: below 3 it is above 0.011, which no
pair passes.
"""

HALVINGS = 30  # of the interval that s lies in: every s gives a bound, the best one the smallest
AT_ONCE = 2**22  # factors of the product that are held at once


@dataclass(frozen=True)
class Composition:
    """The scores of all pairs of heads of a stack.

    Attributes:
        scores: [earlier head, later head] for each way, heads numbered as in `places`; NaN where the second reads in no
            later layer, and where a head is 0.
        excess: of the same pairs, how many deviations the square of the score stands above its mean by chance.
        chance: at most this often chance gives such a score; 1 for what stands less than LOOKED_AT deviations above.
        decoys: for each way, excess and chance of the pairs whose second head is in an earlier layer [2, pairs].
        mean: the score that chance gives, 1 / sqrt(d_model).
        places: layer and number of every head.
    """

    scores: dict[Way, Float[ndarray, "heads heads"]]
    excess: dict[Way, Float[ndarray, "heads heads"]]
    chance: dict[Way, Float[ndarray, "heads heads"]]
    decoys: dict[Way, Float[ndarray, "2 pairs"]]
    mean: float
    places: list[tuple[int, int]]

    @property
    def tests(self) -> int:
        """The pairs of all ways that are looked at."""
        return sum(int(np.isfinite(one).sum()) for one in self.chance.values())

    def unlikely(self, chance: Float[ndarray, "*n"]) -> Bool[ndarray, "*n"]:
        """Which p-values are significant after a Bonferroni correction: p * tests < LEVEL."""
        return np.nan_to_num(chance, nan=1.0) * self.tests < LEVEL

    def least(self, way: Way) -> float:
        """The excess from which on decoys are rare enough; infinite where they are nowhere."""
        own = np.sort(self.excess[way][self.unlikely(self.chance[way])])
        excess, chance = self.decoys[way]
        others = np.sort(excess[self.unlikely(chance)])
        above = len(own) - np.searchsorted(own, own)  # of the pairs, from each one on
        false = len(others) - np.searchsorted(others, own)
        enough = np.flatnonzero(false <= FALSE * above)
        return float(own[enough[0]]) if len(enough) else np.inf

    def clear(self, way: Way) -> list[tuple[tuple[int, int], tuple[int, int], float]]:
        """The pairs ((layer, head) of the earlier one, of the later one, excess) that clearly compose, clearest first."""
        excess = self.excess[way]
        pairs = np.argwhere(self.unlikely(self.chance[way]) & (np.nan_to_num(excess, nan=-np.inf) >= self.least(way)))
        found = [(self.places[a], self.places[b], float(excess[a, b])) for a, b in pairs.tolist()]
        return sorted(found, key=lambda pair: -pair[2])


def compositions(checkpoint: AnyCheckpoint, kind: Kind | None = None) -> Composition:
    """All pairs of heads of one stack's self-attention; of the one that predicts if `kind` is not given."""
    heads, d_model = known_heads(checkpoint, kind or predicting_kind(checkpoint)), checkpoint.shape.d_model
    matrices = ((one.W_Q, one.W_K, one.W_V, one.W_O.T) for one in heads)
    triangles = [_Triangles(*(torch.linalg.qr(one).R for one in four)) for four in matrices]
    written = torch.stack([shares(_squares(r.V, r.O)) for r in triangles])  # [heads, d_head]
    layer = np.array([one.layer for one in heads])
    scores: dict[Way, ndarray] = {}
    excess: dict[Way, ndarray] = {}
    by_chance: dict[Way, ndarray] = {}
    decoys: dict[Way, ndarray] = {}
    later, earlier = layer[:, None] < layer[None], layer[:, None] > layer[None]
    for way in WAYS:
        reading = [_reading(own, r, way) for own, r in zip(heads, triangles, strict=True)]
        X, R_X, R_Y = (torch.stack([one[part] for one in reading]) for part in range(3))
        found = torch.stack([_scores(own, r, X, R_X, R_Y) for own, r in zip(heads, triangles, strict=True)])
        read = torch.stack([shares(_squares(r_x, r_y)) for __, r_x, r_y in reading])
        found = torch.where(torch.from_numpy(later | earlier), found, torch.nan)
        above, at_most = _against_chance(found, written, read, d_model)
        scores[way], excess[way], by_chance[way] = (
            np.where(later, one.numpy(), np.nan) for one in (found, above, at_most)
        )
        whole = earlier & np.isfinite(found.numpy())
        decoys[way] = np.stack([above.numpy()[whole], at_most.numpy()[whole]])
    return Composition(scores, excess, by_chance, decoys, d_model**-0.5, [(one.layer, one.head) for one in heads])


def _against_chance(
    scores: Float[Tensor, "heads heads"],
    written: Float[Tensor, "heads r"],
    read: Float[Tensor, "heads s"],
    d_model: int,
) -> tuple[Float[Tensor, "heads heads"], Float[Tensor, "heads heads"]]:
    """The z-scores of the squared scores under chance, and upper bounds of their p-values."""
    squares = scores.square()
    deviation = chance_deviation(written[:, None], read[None], d_model)
    excess = torch.where(
        deviation > 0, (squares - 1 / d_model) / deviation, torch.where(squares.isnan(), torch.nan, 0.0)
    )
    first, second = (excess >= LOOKED_AT).nonzero(as_tuple=True)
    at_most = torch.ones_like(squares).masked_fill(squares.isnan(), torch.nan)
    at_most[first, second] = probability(squares[first, second], written[first], read[second], d_model)
    return excess, at_most


class _Triangles(NamedTuple):
    """The R factors [d_head, d_head] of the QR decompositions of W_Q, W_K, W_V, W_O^T; product norms depend only on them."""

    Q: Tensor
    K: Tensor
    V: Tensor
    O: Tensor  # noqa: E741


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


def _squares(R_X: Float[Tensor, "d_head d_head"], R_Y: Float[Tensor, "d_head d_head"]) -> Float[Tensor, " d_head"]:
    """The squares of the singular values of X Y^T, by the triangles of both."""
    return torch.linalg.svdvals(R_X @ R_Y.T).square()


# What two heads that have nothing to do with one another would score: the same matrices, turned at random.
#
# A head writes into the space of the rows of M and reads by the columns of B (see `composition`). With the
# eigenvalues a_i of M^T M and c_j of B B^T, each divided by their sum, and a rotation R that is uniform over all of
# them, the square of the score is
#
#     t = |M R B|_F^2 / (|M|_F^2 |B|_F^2) = sum_ij a_i c_j g_ij^2,   g the entries of an orthogonal matrix
#
#     mean       1 / d
#     variance   2 / ((d - 1) (d + 2)) * (sum a_i^2 - 1 / d) * (sum c_j^2 - 1 / d)
#
# exactly. A head of few strong directions scores high by chance far more often than one whose directions are all
# alike: of random matrices without the spectra of the true ones the deviation is much too small. How often chance
# scores t or more is bounded by Chernoff's inequality for the same sum over independent Gaussian numbers g_ij of
# variance 1 / d, whose tail is the heavier one:
#
#     p = min_s exp(-s t) * prod_ij (1 - 2 s a_i c_j / d)^(-1/2),   0 <= s < d / (2 max a_i c_j)
#
# Source of the moments: Collins and Sniady 2006, "Integration with Respect to the Haar Measure on Unitary,
# Orthogonal and Symplectic Group"; of the bound: Chernoff 1952, "A Measure of Asymptotic Efficiency for Tests of a
# Hypothesis".
def shares(squares: Float[Tensor, "*n r"]) -> Float[Tensor, "*n r"]:
    """Eigenvalues divided by their sum; NaN where all are 0."""
    return squares / squares.sum(-1, keepdim=True)


def chance_deviation(
    written: Float[Tensor, "*#n r"], read: Float[Tensor, "*#n s"], d_model: int
) -> Float[Tensor, "*#n"]:
    """The root of the variance of t, by the shares of both matrices; its mean is 1 / d_model."""
    spread = (written.square().sum(-1) - 1 / d_model) * (read.square().sum(-1) - 1 / d_model)
    return (2 * spread.clamp_min(0.0) / ((d_model - 1) * (d_model + 2))).sqrt()


def probability(
    t: Float[Tensor, " n"], written: Float[Tensor, "n r"], read: Float[Tensor, "n s"], d_model: int
) -> Float[Tensor, " n"]:
    """At most this often chance scores t or more, by the shares of both matrices; 1 up to the mean."""
    found = torch.ones_like(t)
    above = (t > 1 / d_model).nonzero()[:, 0]
    step = max(1, AT_ONCE // (written.shape[1] * read.shape[1]))
    for some in torch.split(above, step):
        weights = (written[some, :, None] * read[some, None, :] / d_model).flatten(1)  # of g^2 d, which is 1 on average
        found[some] = _bound(t[some], weights)
    return found


def _bound(t: Float[Tensor, " n"], weights: Float[Tensor, "n m"]) -> Float[Tensor, " n"]:
    """Chernoff's, of sums of independent squares of standard Gaussian numbers with these weights."""
    low, high = torch.zeros_like(t), 0.5 / weights.amax(-1)
    # the slope of the exponent, t - sum w / (1 - 2 s w), falls with s: it is 0 at the best one
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        rising = (weights / (1 - 2 * middle[:, None] * weights)).sum(-1) < t
        low, high = torch.where(rising, middle, low), torch.where(rising, high, middle)
    return (-low * t - 0.5 * torch.log1p(-2 * low[:, None] * weights).sum(-1)).exp()
