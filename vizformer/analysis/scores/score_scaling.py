"""Why the scores are divided by sqrt(d_k): the experiment behind the sentence in the paper, and a real head.

"We suspect that for large values of d_k, the dot products grow large in magnitude, pushing the softmax function into
regions where it has extremely small gradients." (Vaswani et al. 2017, section 3.2.1, with the variance in footnote 4.)
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray

from vizformer.explain import Proof
from vizformer.explain.arrays import float64, softmax
from vizformer.explain.sublayer import in_words
from vizformer.messages import N_
from vizformer.model.input_check import row_at
from vizformer.model.trace import Trace

WIDTHS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
DEVIATIONS = tuple(float(2.0**e) for e in np.arange(-3, 5.01, 0.25))  # standard deviations of scores, 1/8 to 32

PAIRS, QUERIES, KEYS = 2000, 400, 10


@dataclass(frozen=True)
class PairTerms:
    """The terms of a score.

    Attributes:
        terms: scale q[m] k[m], in the order of m.
        position_bias: what is added for the positions; 0 where nothing is.
        content: the terms added up.
        score: the same, bent by the soft cap where the model has one, with the position bias.
        proof: scores are formed inside the model's fused attention and never seen; so the scores of this query and all
            keys, computed as this one, are taken on to z, which is compared.
    """

    query: Float[ndarray, " d_head"]
    key: Float[ndarray, " d_head"]
    terms: Float[ndarray, " d_head"]
    position_bias: float
    content: float
    score: float
    weight: float
    proof: Proof

    @property
    def order(self) -> Int[ndarray, " d_head"]:
        """The places m, from the largest positive term to the largest negative one."""
        return np.argsort(-self.terms, kind="stable")


def dot_products(seed: int, pairs: int = PAIRS) -> Float[ndarray, "pairs widths"]:
    """q . k for random q and k of every width in WIDTHS; components independent, mean 0, variance 1.

    The narrower vectors are the beginnings of the widest one.
    """
    rng = np.random.default_rng(seed)
    shape = (pairs, WIDTHS[-1])
    products = rng.standard_normal(shape, dtype=np.float32) * rng.standard_normal(shape, dtype=np.float32)
    sums = products.cumsum(-1, dtype=np.float64)
    return sums[:, [width - 1 for width in WIDTHS]]


def variances(seed: int, pairs: int = PAIRS) -> Float[ndarray, " widths"]:
    """The sample variance of q . k for every width in WIDTHS; in expectation it is the width.

    Var(q . k) = sum over the d components of Var(q_m k_m) = d, because each product has mean 0 and variance 1.
    """
    return dot_products(seed, pairs).var(0, ddof=1)


def slope(weights: Float[ndarray, "*n m"]) -> Float[ndarray, "*n"]:
    """sum_i p_i (1 - p_i), the trace of softmax's Jacobian d p_i / d s_j = p_i (delta_ij - p_j).

    How much the weights can still move: 1 - 1/m where all are equal, 0 where one has everything.
    """
    return np.asarray((weights * (1.0 - weights)).sum(-1))


@dataclass(frozen=True)
class Saturation:
    """How softmax saturates as the spread of KEYS random scores grows."""

    deviations: Float[ndarray, " m"]
    largest: Float[ndarray, " m"]  # the largest weight, the median over the queries
    # `slope`, the median over the queries.  The median, because the mean is carried by the few queries whose two best
    # keys happen to tie: what a typical query gets to learn from is what counts
    slopes: Float[ndarray, " m"]

    def at(self, deviation: float) -> tuple[float, float]:
        """(largest, slope) at a standard deviation, between the measured ones on a logarithmic scale."""
        at, measured = np.log(deviation), np.log(self.deviations)
        return float(np.interp(at, measured, self.largest)), float(np.interp(at, measured, self.slopes))


def saturation(seed: int) -> Saturation:
    """Softmax over scores s_j ~ N(0, sigma^2), for every sigma in DEVIATIONS."""
    scores = np.random.default_rng(seed).standard_normal((QUERIES, KEYS))
    weights = softmax(np.array(DEVIATIONS)[:, None, None] * scores)  # [m, QUERIES, KEYS]
    return Saturation(np.array(DEVIATIONS), np.median(weights.max(-1), -1), np.median(slope(weights), -1))


@dataclass(frozen=True)
class ScoreScale:
    """A real head with and without the division, over what its queries may see; whatever an edit divides by.

    Attributes:
        divisor: what the dot products are divided by, sqrt(d_head).
        dots, scores: standard deviation of q . k, before and after the division.
        largest, largest_undivided: each query's largest weight.
        slope, slope_undivided: `slope` of each query's weights.
    """

    divisor: float
    dots: float
    scores: float
    largest: Float[ndarray, " n_q"]
    largest_undivided: Float[ndarray, " n_q"]
    slope: Float[ndarray, " n_q"]
    slope_undivided: Float[ndarray, " n_q"]

    def means(self, *, divided: bool) -> tuple[float, float, float]:
        """(standard deviation of the scores, largest weight, slope), the last two averaged over the queries."""
        if divided:
            return self.scores, float(self.largest.mean()), float(self.slope.mean())
        return self.dots, float(self.largest_undivided.mean()), float(self.slope_undivided.mean())


def score_scale(trace: Trace, site: str, head: int) -> ScoreScale:
    """Measures a head of the traced model, in float64."""
    record = trace[site]
    content = float64(record.content_scores(head))
    dots = content / record.scale  # which an edit may have set to something else than 1 / sqrt(d_head)
    capped = record.scoring.bent(content)
    added = float64(record.scores(head)) - capped  # the position bias, which is not divided
    divisor = float(np.sqrt(record.q.shape[2]))
    blocked = record.reason(head).cpu().numpy() > 0
    divided, undivided = (
        softmax(np.where(blocked, -np.inf, record.scoring.bent(s) + added)) for s in (dots / divisor, dots)
    )
    return ScoreScale(
        divisor,
        float(dots[~blocked].std()),
        float((dots / divisor)[~blocked].std()),
        divided.max(-1),
        undivided.max(-1),
        slope(divided),
        slope(undivided),
    )


# One score, taken apart: which numbers of the query and of the key it comes from.
#
#     score(i, j) = sum_m scale q[i, m] k[j, m]  (+ what is added for the positions)
#
# Query and key are taken as the model multiplied them: after their norms and their rotation.
def pair_terms(trace: Trace, site: str, head: int, query: int, key: int) -> PairTerms:
    record = trace[site]
    query, key = row_at(query, record.q.shape[1]), row_at(key, record.k.shape[1])
    record.scores(head)  # raises where there are none
    recorded = record.z(head)[query]
    q, keys, values = (
        float64(record.q[head, query]),
        *(float64(one[record.kv_head(head)]) for one in (record.k, record.v)),
    )
    products = q * keys * record.scale  # [n_k, d_head]
    added = np.zeros(len(keys)) if record.position_bias is None else float64(record.position_bias[head, query])
    content = products.sum(-1)
    scores = record.scoring.bent(content) + added
    mask = record.mask_row(head, query)
    seen = scores if mask is None else scores + float64(mask)
    if record.sinks is not None:
        seen = np.append(seen, float64(record.sinks[head, query % record.sinks.shape[1]]))
    weights = softmax(seen)[: len(scores)]
    proof = Proof.compare(
        N_("z from the model's own attention: {place}, head {head}", place=in_words(site), head=head),
        weights @ values,
        recorded,
        direct=False,
        terms=np.sqrt(weights**2 @ values**2),
    )
    bias, summed, score, weight = (float(of[key]) for of in (added, content, scores, weights))
    return PairTerms(q, keys[key], products[key], bias, summed, score, weight, proof)
