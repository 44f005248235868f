"""Which head is worth a look for a sentence: of those that do not rest, the one whose row says most about one other word."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from vizformer.analysis.heads.maps import Kind, records_of
from vizformer.analysis.heads.resting import find_rest
from vizformer.model.trace import Trace
from vizformer.text import Token

TRIED = 16  # heads, from the largest weight on
ROWS = 128  # the last ones, by which a head is said to rest


@dataclass(frozen=True)
class TellingHead:
    """A head, the word that its row looks at most (`key`), and how much of the row goes there (`weight`).

    `resting`: how many heads give a word more, and rest on one token, so that their map is one bright column.
    """

    layer: int
    head: int
    key: int
    weight: float
    resting: int = 0


def find_telling_head(trace: Trace, kind: Kind, query: int) -> TellingHead | None:
    """The head whose row `query` gives most to one word that is neither the query itself nor a usual sink.

    Takes one row of every head, and `ROWS` rows of those that are tried.  See `telling`.
    """
    records = records_of(trace, kind)
    rows = [record.of_queries(query, query + 1) for record in records]
    weights = np.stack([np.stack([one.pattern(head)[0].float().cpu() for head in range(one.n_heads)]) for one in rows])
    tokens = trace.tokens["encoder" if kind != "decoder" else "decoder"]
    n = len(trace.tokens["decoder" if kind != "encoder" else "encoder"])

    def rests(layer: int, head: int) -> bool:
        last = records[layer].of_queries(max(n - ROWS, 0), n)
        return find_rest(last.pattern(head).float().cpu().numpy(), last.reason(head).cpu().numpy()) is not None

    return telling(weights, words_to_look_at(tokens, None if kind == "cross" else query), rests)


def telling(
    weights: Float[ndarray, "n_layers n_heads n_k"],
    keys: Bool[ndarray, " n_k"],
    rests: Callable[[int, int], bool] = lambda layer, head: False,
) -> TellingHead | None:
    """argmax over layer, head and those keys of one row's weights; None where there is no such key, or none is seen.

    Heads that rest are passed over, unless the first `TRIED` all do.
    """
    if not keys.any() or not (found := np.where(keys, weights, 0.0)).max() > 0:
        return None
    most = found.max(-1)
    places = [divmod(int(at), most.shape[1]) for at in np.argsort(-most, axis=None, kind="stable")[:TRIED]]
    seen = [place for place in places if most[place] > 0]
    resting = next((i for i, place in enumerate(seen) if not rests(*place)), 0)
    layer, head = seen[resting]
    return TellingHead(layer, head, int(found[layer, head].argmax()), float(most[layer, head]), resting)


def words_to_look_at(tokens: Sequence[Token], query: int | None) -> Bool[ndarray, " n_k"]:
    """Which keys are words: no marks and no punctuation; of self-attention (with a query) not the query, nor the first
    token, where heads rest (Xiao et al. 2023)."""
    words = np.array([not one.special and any(map(str.isalnum, one.text)) for one in tokens], dtype=bool)
    if query is not None:
        words[[0, query]] = False
    return words
