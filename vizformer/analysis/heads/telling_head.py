"""Which head is worth a look for a sentence: the one whose row says most about one other word."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from vizformer.analysis.heads.maps import Kind, records_of
from vizformer.model.trace import Trace
from vizformer.text import Token


@dataclass(frozen=True)
class TellingHead:
    """A head, the word that its row looks at most (`key`), and how much of the row goes there (`weight`)."""

    layer: int
    head: int
    key: int
    weight: float


def find_telling_head(trace: Trace, kind: Kind, query: int) -> TellingHead | None:
    """The head whose row `query` gives most to one word that is neither the query itself nor a usual sink.

    Takes one row of every head.  See `telling`.
    """
    records = records_of(trace, kind)
    rows = [record.of_queries(query, query + 1) for record in records]
    weights = np.stack([np.stack([one.pattern(head)[0].float().cpu() for head in range(one.n_heads)]) for one in rows])
    tokens = trace.tokens["encoder" if kind != "decoder" else "decoder"]
    return telling(weights, words_to_look_at(tokens, None if kind == "cross" else query))


def telling(weights: Float[ndarray, "n_layers n_heads n_k"], keys: Bool[ndarray, " n_k"]) -> TellingHead | None:
    """argmax over layer, head and those keys of one row's weights; None where there is no such key, or none is seen."""
    if not keys.any() or not (found := np.where(keys, weights, 0.0)).max() > 0:
        return None
    layer, head, key = (int(at) for at in np.unravel_index(int(found.argmax()), found.shape))
    return TellingHead(layer, head, key, float(found[layer, head, key]))


def words_to_look_at(tokens: Sequence[Token], query: int | None) -> Bool[ndarray, " n_k"]:
    """Which keys are words: no marks and no punctuation; of self-attention (with a query) not the query, nor the first
    token, where heads rest (Xiao et al. 2023)."""
    words = np.array([not one.special and any(map(str.isalnum, one.text)) for one in tokens], dtype=bool)
    if query is not None:
        words[[0, query]] = False
    return words
