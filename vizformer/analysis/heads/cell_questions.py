"""Questions that are answered by a cell of an attention map, with the rows of queries and the columns of keys."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from vizformer.analysis.heads.maps import HeadMaps, Kind, head_maps
from vizformer.analysis.heads.statistics import TENDENCIES, HeadStatistics, Tendency
from vizformer.model.trace import Trace
from vizformer.text import Token

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
