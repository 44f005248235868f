"""One score, taken apart: which numbers of the query and of the key it comes from.

    score(i, j) = sum_m scale q[i, m] k[j, m]  (+ what is added for the positions)

Query and key are taken as the model multiplied them: after their norms and their rotation.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray

from vizformer.explain import Proof
from vizformer.explain.arrays import float64, softmax
from vizformer.explain.site_words import in_words
from vizformer.messages import N_
from vizformer.model import Trace
from vizformer.model.input_check import row_at


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
