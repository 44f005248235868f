"""Questions that a sentence itself answers: the query for which the answer is clearest, and what is offered beside it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool
from numpy import ndarray

from vizformer.analysis.heads.maps import Kind, head_maps, n_layers, site_name
from vizformer.analysis.heads.resting import find_rest
from vizformer.analysis.heads.score_scaling import score_scale
from vizformer.model.trace import Trace
from vizformer.text import Token

MOST_CHOICES = 5


@dataclass(frozen=True)
class WhereQuestion:
    """Where does a query look most?

    `keys`: the choices, in the order of the text; `best` is the right one.
    """

    layer: int
    head: int
    query: int
    keys: tuple[int, ...]
    best: int
    weights: tuple[float, ...]


def where_question(trace: Trace, kind: Kind) -> WhereQuestion | None:
    """A query with a clear answer: the largest lead of a key over the next one, away from the query itself if possible.

    lead = a_(1) - a_(2), the two largest weights of the query; 1 less for a query that makes no good question (see
    `_dull`), 0.5 less for one that looks at itself most, and for a head that rests on one key (see `find_rest`).

    None where no query has two keys to choose from.
    """
    maps = head_maps(trace, kind)
    sees = maps.reasons == 0  # [n_layers, n_q, n_k]
    if maps.weights.shape[-1] < 2 or (sees.sum(-1) < 2).all():
        return None
    top = np.sort(maps.weights, -1)
    lead = top[..., -1] - top[..., -2]  # [n_layers, n_heads, n_q]
    best = maps.weights.argmax(-1)
    lead = lead - 1.0 * _dull(_queries(trace, kind), sees)[:, None]
    lead = lead - (0.5 * (best == np.arange(best.shape[-1])) if kind != "cross" else 0.0)
    rests = [
        [find_rest(w, why) is not None for w in heads] for heads, why in zip(maps.weights, maps.reasons, strict=True)
    ]
    lead = lead - 0.5 * np.array(rests)[..., None]
    layer, head, query = (int(i) for i in np.unravel_index(int(lead.argmax()), lead.shape))
    answer, n_k = int(best[layer, head, query]), maps.weights.shape[-1]
    near = [answer, query, query - 1, 0, query + 1, n_k - 1, *range(n_k)]
    usable = [key for key in dict.fromkeys(near) if 0 <= key < n_k and sees[layer, query, key]]
    weights = tuple(float(w) for w in maps.weights[layer, head, query])
    return WhereQuestion(layer, head, query, tuple(sorted(usable[:MOST_CHOICES])), answer, weights)


@dataclass(frozen=True)
class ScaleQuestion:
    """What does a query's largest weight become without the division by sqrt(d_head), and if all keys weighed the same?

    `even`: 1 / the number of keys that the query sees.
    """

    layer: int
    head: int
    query: int
    key: int
    divisor: float
    divided: float
    undivided: float
    even: float


def scale_question(trace: Trace, kind: Kind) -> ScaleQuestion | None:
    """The query whose largest weight grows most when the division is forgotten; None where none has a choice."""
    maps = head_maps(trace, kind)
    sees = (maps.reasons == 0).sum(-1)  # [n_layers, n_q]
    if (sees < 2).all():
        return None
    found: list[tuple[float, ScaleQuestion]] = []
    dull = _dull(_queries(trace, kind), maps.reasons == 0)
    for layer in range(n_layers(trace, kind)):
        for head in range(maps.weights.shape[1]):
            scale = score_scale(trace, site_name(kind, layer), head)
            gain = scale.largest_undivided - scale.largest - 1.0 * dull[layer]
            query = int(gain.argmax())
            question = ScaleQuestion(
                layer,
                head,
                query,
                int(maps.weights[layer, head, query].argmax()),
                scale.divisor,
                float(scale.largest[query]),
                float(scale.largest_undivided[query]),
                1.0 / sees[layer, query],
            )
            found.append((float(gain[query]), question))
    return max(found, key=lambda pair: pair[0])[1]


@dataclass(frozen=True)
class RatioQuestion:
    """How many times as large is the weight of one key as that of another, by their scores?

    `first`, `second`: the keys, the one with the larger score first.
    `scores`: those of the two, as softmax sees them.
    `ratio`: of their weights, exp(scores[0] - scores[1]).
    """

    layer: int
    head: int
    query: int
    first: int
    second: int
    scores: tuple[float, float]
    ratio: float


TELLING_RATIO = 3.0
ASKED_QUERIES = 24  # the first of a text: its maps may have millions of cells


def ratio_question(trace: Trace, kind: Kind) -> RatioQuestion | None:
    """The two leading keys of a query: of the query at which their weights are nearest to 3 : 1.

    Of the first queries of the text (`ASKED_QUERIES`).  None where no query has two keys to choose from.
    """
    maps = head_maps(trace, kind, queries=ASKED_QUERIES)
    sees = maps.reasons == 0  # [n_layers, n_q, n_k]
    if maps.weights.shape[-1] < 2 or (sees.sum(-1) < 2).all():
        return None
    scores = np.where(sees[:, None], maps.scores, -np.inf)
    order = np.argsort(-scores, axis=-1, kind="stable")[..., :2]  # [n_layers, n_heads, n_q, 2]
    two = np.take_along_axis(scores, order, -1)
    gap = two[..., 0] - two[..., 1]  # infinite where only one key is seen
    far = np.abs(gap - np.log(TELLING_RATIO)) + 100.0 * _dull(_queries(trace, kind)[:ASKED_QUERIES], sees)[:, None]
    layer, head, query = (int(i) for i in np.unravel_index(int(far.argmin()), far.shape))
    first, second = (int(key) for key in order[layer, head, query])
    found = float(two[layer, head, query, 0]), float(two[layer, head, query, 1])
    return RatioQuestion(layer, head, query, first, second, found, float(np.exp(found[0] - found[1])))


def _queries(trace: Trace, kind: Kind) -> Sequence[Token]:
    return trace.tokens["encoder" if kind == "encoder" else "decoder"]


def _dull(queries: Sequence[Token], sees: Bool[ndarray, "n_layers n_q n_k"]) -> Bool[ndarray, "n_layers n_q"]:
    """Queries that make no good question: marks, and those that have little to choose from."""
    special = np.array([token.special for token in queries], dtype=np.bool_)
    return special | (sees.sum(-1) < min(3, sees.shape[-1]))
