"""Attention as a look-up: a query is compared with every key, and the values come back mixed by how well they fit."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from vizformer.errors import TraceError
from vizformer.explain.arrays import float64, softmax
from vizformer.explain.step import Proof
from vizformer.explain.sublayer import in_words
from vizformer.messages import N_
from vizformer.model.input_check import row_at
from vizformer.model.trace import Trace

# Five recipe notes. Key: what the title promises (sweet, cold, spicy). Value: what the note says (minutes, servings).
RECIPE_KEYS = np.array([[2.0, 2.0, 0.0], [2.0, 0.5, 0.0], [0.0, 2.0, 0.5], [0.0, 0.0, 2.0], [2.0, -1.0, 0.0]])
RECIPE_VALUES = np.array([[20.0, 4.0], [60.0, 8.0], [10.0, 2.0], [25.0, 2.0], [5.0, 1.0]])
RECIPE_QUERY = np.array([1.0, 1.0, 0.0])


@dataclass(frozen=True)
class LookUp:
    """One query answered twice: by the best row alone, and by all rows in proportion.

    Attributes:
        scores: how well each key fits; -inf for rows that may not be read.
        weights: softmax(scores / temperature); they sum to 1 (all 0 where every row is blocked).
        best: the row that a hard look-up returns, the first one of those that fit equally well.
        hard: values[best].
        soft: weights @ values.
    """

    scores: Float[ndarray, " n"]
    weights: Float[ndarray, " n"]
    best: int
    hard: Float[ndarray, " d_v"]
    soft: Float[ndarray, " d_v"]

    def leading(self, count: int) -> list[int]:
        """The `count` rows with the largest weights, in the order of the table; all of them where there are no more."""
        if len(self.weights) <= count:
            return list(range(len(self.weights)))
        return sorted(int(row) for row in np.argsort(-self.weights, kind="stable")[:count])

    def left_by(self, rows: list[int]) -> float:
        """The weight of all other rows together: 1 - sum of theirs."""
        return 1.0 - float(self.weights[rows].sum())


def look_up(
    scores: Float[ndarray, " n"],
    values: Float[ndarray, "n d_v"],
    *,
    temperature: float = 1.0,
) -> LookUp:
    """softmax(scores / T) V beside V[argmax(scores)], to which it tends as T goes to 0.

    Source: Bahdanau, Cho & Bengio 2014 (a soft alignment in place of a hard one); Vaswani et al. 2017, section 3.2.

    Raises:
        ValueError: a temperature that is not above 0, or nothing to look up.
    """
    scores, values = np.asarray(scores, dtype=np.float64), np.asarray(values, dtype=np.float64)
    if not temperature > 0:
        raise ValueError(f"a temperature of {temperature}: it must be above 0")
    if not len(scores):
        raise ValueError("a look-up needs at least one row")
    weights = softmax(scores / temperature)
    best = int(scores.argmax())
    return LookUp(scores, weights, best, values[best], weights @ values)


def look_up_query(
    query: Float[ndarray, " d_k"],
    keys: Float[ndarray, "n d_k"],
    values: Float[ndarray, "n d_v"],
    *,
    temperature: float = 1.0,
) -> LookUp:
    """The look-up of a query among keys, with the scores k_j . q (not divided by anything but the temperature)."""
    return look_up(keys @ query, values, temperature=temperature)


@dataclass(frozen=True)
class HeadLookUp:
    """The look-up of one head for one query.

    Attributes:
        dots: q . k_j.
        found: the look-up with the scores that softmax sees, and the head's values.
        proof: soft against the model's own fused z; None at another temperature than the model's.
    """

    dots: Float[ndarray, " n_k"]
    found: LookUp
    values: Float[ndarray, "n_k d_head"]
    proof: Proof | None


def head_look_up(trace: Trace, site: str, head: int, query: int, *, temperature: float = 1.0) -> HeadLookUp:
    """The look-up of a head: scores q . k_j / sqrt(d_head) (+ position bias + mask), values v_j; in float64."""
    record = trace[site]
    if not record.weighs_plainly:
        raise TraceError(
            "{site} has a sink, or no scores: its weights are no softmax of scores alone.", site=in_words(site)
        )
    z = record.z(head)
    query = row_at(query, len(z))
    q, group = float64(record.q[head, query]), record.kv_head(head)
    k, v = float64(record.k[group]), float64(record.v[group])
    dots: Float[ndarray, " n_k"] = k @ q
    scores = record.scoring.bent(dots * record.scale)
    if record.position_bias is not None:
        scores = scores + float64(record.position_bias[head, query])
    if (mask := record.mask_row(head, query)) is not None:
        scores = scores + float64(mask)
    found = look_up(scores, v, temperature=temperature)
    if temperature != 1.0:
        return HeadLookUp(dots, found, v, None)
    anchor = N_("z from the model's own attention: {place}, head {head}", place=in_words(site), head=head)
    return HeadLookUp(dots, found, v, Proof.compare(anchor, found.soft, z[query], terms=found.weights @ np.abs(v)))
