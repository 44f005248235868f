"""What a head does with a whole text in a few numbers, and which keys all heads look at; taken in the same pass as the
small maps, so that no whole map is ever held.

For the weights a[i, j] of query i and key j, means over the queries that see a key at all:

    entropy      -sum_j a[i, j] ln a[i, j], in nats: 0 where one key gets everything, ln n where n keys get the same
    distance     sum_j a[i, j] |i - j|: from how many tokens away a query reads; only where both are tokens of one text
    first        a[i, 0]: what the first key gets, the usual attention sink
    last         a[i, m-1]: what the last key gets, the end mark of most encoders
    previous     a[i, i-1]: what the token before gets; without the first query, which has none
    own          a[i, i]: what a token gives itself; without the first query, which may see nothing else
    next         a[i, i+1]: what the token after gets; without the last query
    received[j]  a[i, j]: what each key gets

Source of the sink: Xiao et al. 2023, "Efficient Streaming Language Models with Attention Sinks"; a key that gets more
than SINK of a head's attention counts as one (Gu et al. 2024, "When Attention Sink Emerges in Language Models", 3.1).
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

SINK = 0.3
NAMES = ("entropy", "distance", "first", "last", "previous", "own", "next")
STEPS = (-1, 0, 1)  # from a query to the key before, its own, and the key after
OF_HEADS = 0.1  # a key is a sink of a kind of attention where it is one for at least this share of its heads


@dataclass(frozen=True)
class HeadMeasures:
    """The measures of all heads of one kind of attention; see the module.

    Attributes:
        distance, previous, own, next: None where queries and keys are tokens of different texts.
        received: of every key; sums to 1 over the keys.
    """

    entropy: Float[ndarray, "n_layers n_heads"]
    distance: Float[ndarray, "n_layers n_heads"] | None
    first: Float[ndarray, "n_layers n_heads"]
    last: Float[ndarray, "n_layers n_heads"]
    previous: Float[ndarray, "n_layers n_heads"] | None
    own: Float[ndarray, "n_layers n_heads"] | None
    next: Float[ndarray, "n_layers n_heads"] | None
    received: Float[ndarray, "n_layers n_heads n_k"]


def sinks(received: Float[ndarray, "n_layers n_heads n_k"]) -> tuple[int, ...]:
    """The keys that are a sink in at least OF_HEADS of all heads, those of most heads first.

    More than SINK it must be, and in short texts more than twice an even share.
    """
    heads = (received > max(SINK, 2.0 / received.shape[-1])).mean((0, 1))
    return tuple(int(key) for key in np.argsort(-heads, kind="stable") if heads[key] >= OF_HEADS)


class Sums:
    """The sums of a pass over the queries of one layer."""

    def __init__(self, n_heads: int, n_k: int, device: torch.device) -> None:
        self._heads = torch.zeros(4, n_heads, dtype=torch.float64, device=device)
        self._beside = torch.zeros(len(STEPS), n_heads, dtype=torch.float64, device=device)
        self._received = torch.zeros(n_heads, n_k, dtype=torch.float64, device=device)
        self._queries = 0

    def add(self, weights: Tensor, scores: Tensor, first_query: int, first_key: int) -> None:
        """Some queries, over the keys from `first_key` on.

        Args:
            weights: [heads, queries, keys], rows of 0 where a query sees nothing.
            scores: what they are the softmax of, -inf where a cell is blocked; changed in place.
        """
        sums = weights.sum(-1)  # [heads, queries]
        seeing = sums > 0
        top = scores.amax(-1)
        # -ln a = ln sum exp(s) - s, and the logarithm of the sum follows from the largest: s_max - ln a_max
        norm = (top - weights.amax(-1).log()).nan_to_num_(0.0, 0.0, 0.0)
        mean_score = scores.clamp_(min=-1e30).mul_(weights).sum(-1)
        entropy = torch.where(seeing, norm * sums - mean_score, 0.0).clamp_(min=0.0)
        query = torch.arange(first_query, first_query + weights.shape[1], device=weights.device)
        key = torch.arange(first_key, first_key + weights.shape[2], device=weights.device)
        apart = (query[:, None] - key[None, :]).abs().to(weights.dtype)
        distance = torch.mul(weights, apart, out=scores).sum(-1)
        ends = [key[0] == 0, key[-1] == self._received.shape[1] - 1]
        first, last = (weights[:, :, -at] if here else torch.zeros_like(entropy) for at, here in enumerate(ends))
        self._heads += torch.stack([entropy, distance, first, last]).sum(-1, dtype=torch.float64)
        begin = int(first_query == 0)  # the first query has no choice
        for number, step in enumerate(STEPS):
            found = weights[:, begin * (step < 1) :].diagonal(
                first_query + begin * (step < 1) - first_key + step, dim1=1, dim2=2
            )
            self._beside[number] += found.sum(-1, dtype=torch.float64)
        self._received[:, first_key : first_key + weights.shape[2]] += weights.sum(1, dtype=torch.float64)
        self._queries += int(seeing[0].sum())

    def means(self) -> tuple[ndarray, ndarray]:
        """[7, heads], in the order of NAMES, and [heads, keys]: received."""
        n = max(1, self._queries)
        found = torch.cat([self._heads / n, self._beside / max(1, n - 1)])
        return found.cpu().numpy(), (self._received / n).float().cpu().numpy()
