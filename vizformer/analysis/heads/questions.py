"""Questions that a sentence itself answers: the query for which the answer is clearest, and what is offered beside it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from vizformer.analysis.heads.maps import HeadMaps, Kind, head_maps, n_layers, site_name
from vizformer.analysis.heads.measures import TENDENCIES, HeadStatistics, Tendency, find_rest
from vizformer.analysis.scores.score_scaling import score_scale
from vizformer.model.trace import Trace
from vizformer.text import Token

MOST_CHOICES = 5

_STACKS: dict[Kind, tuple[str, str]] = {
    "encoder": ("encoder", "encoder"),
    "decoder": ("decoder", "decoder"),
    "cross": ("decoder", "encoder"),
}


@dataclass(frozen=True, eq=False)
class CellQuestion:
    """Which cell holds the weight with which `query` looks at `key`?  Weights are the first rows and columns of the map."""

    layer: int
    head: int
    query: int
    key: int
    weights: Float[ndarray, "rows columns"]


@dataclass(frozen=True, eq=False)
class HabitQuestion(CellQuestion):
    """In which cell of its row does a head do what it mostly does (`habit`)?

    Where no head of the text has a habit, it is None, and `key` is where the query looks most.
    """

    habit: Tendency | None


@dataclass(frozen=True, eq=False)
class AnswerCell:
    """In which cell would a row of a decoder read the very token that it is trained to say?

    Attributes:
        query, key: row and column of the answer; key = query + 1.
        weights: first layer, mean of the heads; its first rows and columns.
    """

    query: int
    key: int
    weights: Float[ndarray, "rows columns"]


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


# Questions that are answered by a cell of an attention map, with the rows of queries and the columns of keys.
def cell_question(trace: Trace, kind: Kind, most: int) -> CellQuestion | None:
    """The largest weight that a word gives to another word.

    Words come before marks and punctuation, as queries and as keys, and in self-attention no query is asked about its
    own column.  The first head of the first layer, with which pages begin, is asked about only where there is no other.
    None where no query sees a key besides.

    `most`: rows and columns that can be asked about: the first ones of the map.
    """
    maps = head_maps(trace, kind, queries=most)
    weights, sees = maps.weights[..., :most], (maps.reasons == 0)[..., :most]
    if kind != "cross":
        sees[:, np.eye(*sees.shape[1:], dtype=np.bool_)] = False
    if not sees.any():
        return None
    queries, keys = (trace.tokens[stack][:most] for stack in _STACKS[kind])
    worth = np.where(sees[:, None], weights, -np.inf) - 4.0 * _no_words(queries)[:, None] - 2.0 * _no_words(keys)
    worth[0, 0] -= 1.0
    layer, head, query, key = (int(i) for i in np.unravel_index(int(worth.argmax()), worth.shape))
    return CellQuestion(layer, head, query, key, weights[layer, head])


def habit_question(trace: Trace, kind: Kind, most: int, found: HeadStatistics) -> HabitQuestion | None:
    """The head with the clearest habit, and the word that shows it best; without one, the largest weight of all.

    A habit is what `HeadStatistics.leading` finds; the clearest one takes the largest share of the attention.  Heads that
    look at the query's own token come after the others, and the first head of the first layer last, as in
    `cell_question`.  None where no query sees two keys.
    """
    maps = head_maps(trace, kind, queries=most)
    n_k = maps.weights.shape[-1]
    habits: list[tuple[float, int, int, Tendency]] = []
    for layer in range(maps.weights.shape[0]):
        for head in range(maps.weights.shape[1]):
            habit = found.leading(layer, head)
            if habit is not None:
                habits.append((float(found.shares[habit][layer, head]), layer, head, habit))
    no_words = _no_words(trace.tokens[_STACKS[kind][0]][:most])
    for __, layer, head, habit in sorted(habits, key=lambda one: (one[1:3] == (0, 0), one[3] == "own", -one[0])):
        rows = [row for row in _habitual(maps, layer, head, habit, most) if not no_words[row]]
        if rows:
            weights = maps.weights[layer, head]
            row = max(rows, key=lambda row: float(weights[row].max()))
            return HabitQuestion(layer, head, row, _target(habit, row, n_k), weights[:, :most], habit)
    asked = cell_question(trace, kind, most)
    if asked is None:
        return None
    row_of = maps.weights[asked.layer, asked.head, asked.query]
    key = int(row_of[:most].argmax())
    return HabitQuestion(asked.layer, asked.head, asked.query, key, asked.weights, None)


def answer_cell(trace: Trace, most: int) -> AnswerCell | None:
    """A row of the decoder's self-attention and the column of its answer; None for a text of one token.

    Of the rows whose answer is another token, the first one that is a word; the weights there are 0, as the causal mask
    blocks the cell.
    """
    maps, tokens = head_maps(trace, "decoder", queries=most), trace.tokens["decoder"][:most]
    if len(tokens) < 2:
        return None
    rows, no_words = range(len(tokens) - 1), _no_words(tokens)
    query = max(rows, key=lambda i: (not no_words[i], tokens[i].id != tokens[i + 1].id, -i))
    return AnswerCell(query, query + 1, maps.weights[0, ..., :most].mean(0))


def _habitual(maps: HeadMaps, layer: int, head: int, habit: Tendency, most: int) -> list[int]:
    """The rows that look most where the head has its habit, have a choice, and can be asked about."""
    n_q, n_k = maps.reasons.shape[1:]
    best, sees = maps.weights[layer, head].argmax(-1), (maps.reasons[layer] == 0).sum(-1)
    return [
        row for row in range(n_q) if int(best[row]) == _target(habit, row, n_k) < most and sees[row] > min(2, n_k - 1)
    ]


def _target(habit: Tendency, row: int, n_k: int) -> int:
    assert habit in TENDENCIES
    return {"previous": row - 1, "own": row, "next": row + 1, "first": 0, "last": n_k - 1}[habit]


def _no_words(tokens: "tuple[Token, ...]") -> ndarray:
    """Which tokens are marks or punctuation."""
    return np.array([token.special or not any(map(str.isalnum, token.text)) for token in tokens], dtype=np.bool_)
