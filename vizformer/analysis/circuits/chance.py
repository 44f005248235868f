"""What two heads that have nothing to do with one another would score: the same matrices, turned at random.

A head writes into the space of the rows of M and reads by the columns of B (see `composition`).  With the eigenvalues
a_i of M^T M and c_j of B B^T, each divided by their sum, and a rotation R that is uniform over all of them, the square of
the score is

    t = |M R B|_F^2 / (|M|_F^2 |B|_F^2) = sum_ij a_i c_j g_ij^2,   g the entries of an orthogonal matrix

    mean       1 / d
    variance   2 / ((d - 1) (d + 2)) * (sum a_i^2 - 1 / d) * (sum c_j^2 - 1 / d)

exactly.  A head of few strong directions scores high by chance far more often than one whose directions are all alike: of
random matrices without the spectra of the true ones the deviation is much too small.  How often chance scores t or more is
bounded by Chernoff's inequality for the same sum over independent Gaussian numbers g_ij of variance 1 / d, whose tail is
the heavier one:

    p = min_s exp(-s t) * prod_ij (1 - 2 s a_i c_j / d)^(-1/2),   0 <= s < d / (2 max a_i c_j)

Source of the moments: Collins and Sniady 2006, "Integration with Respect to the Haar Measure on Unitary, Orthogonal and
Symplectic Group"; of the bound: Chernoff 1952, "A Measure of Asymptotic Efficiency for Tests of a Hypothesis".
"""

import torch
from jaxtyping import Float
from torch import Tensor

HALVINGS = 30  # of the interval that s lies in: every s gives a bound, the best one the smallest
AT_ONCE = 2**22  # factors of the product that are held at once


def shares(squares: Float[Tensor, "*n r"]) -> Float[Tensor, "*n r"]:
    """Eigenvalues divided by their sum; NaN where all are 0."""
    return squares / squares.sum(-1, keepdim=True)


def deviation(written: Float[Tensor, "*#n r"], read: Float[Tensor, "*#n s"], d_model: int) -> Float[Tensor, "*#n"]:
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
