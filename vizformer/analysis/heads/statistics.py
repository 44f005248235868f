"""What a head does in one sentence, as a few numbers: where its attention goes on average."""

from dataclasses import dataclass
from itertools import product
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from vizformer.analysis.heads.maps import HeadMaps

Tendency = Literal["previous", "own", "next", "first", "last"]
TENDENCIES: tuple[Tendency, ...] = ("previous", "own", "next", "first", "last")
CLEAR = 0.5
"""The share for a tendency: at least half of the attention, and at least 1.5 times what chance would give."""
ABOVE_CHANCE = 1.5


@dataclass(frozen=True)
class HeadStatistics:
    """Means over the queries of one sentence, for every head of one kind of attention."""

    # attention to the token before, to the query itself, to the token after, to the first and to the last key; each
    # averaged over the queries that can see such a key and another one (NaN where fewer than half can, as under a
    # causal mask for the last key, and for the first three in cross-attention, where a position of the target is no
    # position of the source)
    shares: dict[Tendency, Float[ndarray, "n_layers n_heads"]]
    # what a head of each layer would give there that spreads its attention evenly over the keys it can see
    chance: dict[Tendency, Float[ndarray, " n_layers"]]
    # exp of the entropy of each query's weights, averaged: from how many keys a query reads
    effective: Float[ndarray, "n_layers n_heads"]
    # how many keys a query of each layer can see on average: fewer where there is a sliding window
    visible: Float[ndarray, " n_layers"]

    def leading(self, layer: int, head: int) -> Tendency | None:
        """The tendency of a head with the largest excess over chance; None where there is none."""
        clear = {tendency: excess[layer, head] for tendency, excess in self._excess().items()}
        best = max(clear, key=lambda tendency: clear[tendency])
        return best if clear[best] > -np.inf else None

    def experts(self) -> dict[Tendency, tuple[int, int]]:
        """The layer and head with the largest excess over chance, for everything that some head clearly does."""
        found = {}
        for tendency, excess in self._excess().items():
            layer, head = np.unravel_index(excess.argmax(), excess.shape)
            if excess[layer, head] > -np.inf:
                found[tendency] = (int(layer), int(head))
        return found

    def _excess(self) -> dict[Tendency, Float[ndarray, "n_layers n_heads"]]:
        """The excess of each share over chance; -inf where the tendency is not clear or not possible."""
        excess = {}
        for tendency, shares in self.shares.items():
            chance = np.broadcast_to(self.chance[tendency][:, None], shares.shape)
            clear = shares >= np.maximum(CLEAR, np.minimum(ABOVE_CHANCE * chance, 0.99))  # not where either is NaN
            excess[tendency] = np.where(clear, shares - chance, -np.inf)
        return excess


def head_statistics(maps: HeadMaps, *, cross: bool = False) -> HeadStatistics:
    """Measures all heads of one kind of attention.

    share_habit = mean over queries i of pattern[i, target(i)], effective = mean over i of exp(-sum_j a_ij log a_ij).
    """
    n_layers, n_q, n_k = maps.reasons.shape
    sees = maps.reasons == 0
    count = sees.sum(-1)  # [n_layers, n_q]
    shares: dict[Tendency, ndarray] = {tendency: np.full(maps.weights.shape[:2], np.nan) for tendency in TENDENCIES}
    chance: dict[Tendency, ndarray] = {tendency: np.full(n_layers, np.nan) for tendency in TENDENCIES}
    for layer, tendency in product(range(n_layers), TENDENCIES):
        queries, keys = _targets(tendency, n_q, n_k, cross, sees[layer])
        if len(queries):
            shares[tendency][layer] = maps.weights[layer][:, queries, keys].mean(-1)
            chance[tendency][layer] = (1.0 / count[layer, queries]).mean()
    weights = maps.weights.astype(np.float64)
    entropy = -(weights * np.log(np.where(weights > 0, weights, 1.0))).sum(-1)  # [n_layers, n_heads, n_q]
    return HeadStatistics(shares, chance, np.exp(entropy).mean(-1), count.mean(-1))


def _targets(
    tendency: Tendency, n_q: int, n_k: int, cross: bool, sees: Bool[ndarray, "n_q n_k"]
) -> tuple[ndarray, ndarray]:
    """The queries that can see their target, and its position.

    A query whose only visible key is the target says nothing: it has no choice, and is left out.  None where fewer
    than half of the others see theirs: a mean over so few would be no tendency.
    """
    queries, choosing = np.arange(n_q), sees.sum(1) > 1
    if tendency in ("first", "last"):
        keys = np.full(n_q, 0 if tendency == "first" else n_k - 1)
    elif cross:
        return queries[:0], queries[:0]
    else:
        keys = queries + {"previous": -1, "own": 0, "next": 1}[tendency]
    inside = (keys >= 0) & (keys < n_k) & choosing
    inside[inside] &= sees[queries[inside], keys[inside]]
    if 2 * inside.sum() < choosing.sum():
        inside[:] = False
    return queries[inside], keys[inside]
