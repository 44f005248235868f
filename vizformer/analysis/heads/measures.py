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

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

import numpy as np
import torch
from jaxtyping import Bool, Float, UInt8
from numpy import ndarray
from torch import Tensor

from vizformer.analysis.heads.maps import HeadMaps, Kind, kind_of, records_of
from vizformer.model.masks import total_bias
from vizformer.model.records import AttentionRecord, weights_of
from vizformer.model.trace import Trace
from vizformer.text import Token

SINK = 0.3
NAMES = ("entropy", "distance", "first", "last", "previous", "own", "next")
STEPS = (-1, 0, 1)  # from a query to the key before, its own, and the key after
OF_HEADS = 0.1  # a key is a sink of a kind of attention where it is one for at least this share of its heads

Tendency = Literal["previous", "own", "next", "first", "last"]
TENDENCIES: tuple[Tendency, ...] = ("previous", "own", "next", "first", "last")
CLEAR = 0.5
"""The share for a tendency: at least half of the attention, and at least 1.5 times what chance would give."""
ABOVE_CHANCE = 1.5

AT_ONCE = 1 << 16
"""The number of cells up to which several pools of queries are computed together, a short text in one pass."""


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

    def _excess(self) -> dict[Tendency, Float[ndarray, "n_layers n_heads"]]:
        """The excess of each share over chance; -inf where the tendency is not clear or not possible."""
        excess = {}
        for tendency, shares in self.shares.items():
            chance = np.broadcast_to(self.chance[tendency][:, None], shares.shape)
            clear = shares >= np.maximum(CLEAR, np.minimum(ABOVE_CHANCE * chance, 0.99))  # not where either is NaN
            excess[tendency] = np.where(clear, shares - chance, -np.inf)
        return excess


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


# What a head does in one sentence, as a few numbers: where its attention goes on average.
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


# The heads of a long text: a small map of each, without ever holding a whole one.
@dataclass(frozen=True)
class HeadOverview:
    """All heads of one kind of attention at a glance: the largest weight in every pool of cells, and measures."""

    largest: Float[ndarray, "n_layers n_heads rows columns"]
    measures: HeadMeasures


def head_overview(trace: Trace, kind: Kind, rows: ndarray, columns: ndarray) -> HeadOverview:
    """`records_overview` of all heads of one kind of attention."""
    return records_overview(records_of(trace, kind), rows, columns)


@torch.inference_mode()
def records_overview(records: Sequence[AttentionRecord], rows: ndarray, columns: ndarray) -> HeadOverview:
    """The largest weight in every pool of cells, and the measures, for the heads of some layers.

    largest[l, h, i, j] = max of softmax(scores of head h in layer l) over queries rows[i] <= q < rows[i + 1] and keys
    columns[j] <= k < columns[j + 1].  One pool of queries, or a few, is computed at a time, over the keys that one of them
    sees, so that no more than heads x queries of a pool x keys numbers are held, or AT_ONCE.

    `rows`, `columns`: where the pools begin, rising from 0; the last one ends with the text.
    """
    found = [_of_layer(record, rows.tolist(), columns) for record in records]
    largest, sums = np.stack([one for one, _ in found]), [one.means() for _, one in found]
    entropy, distance, first, last, previous, own, after = np.stack([one for one, _ in sums], axis=1).astype(np.float32)
    received = np.stack([one for _, one in sums])
    if kind_of(records[0].site) == "cross":  # queries and keys are no tokens of one text
        return HeadOverview(largest, HeadMeasures(entropy, None, first, last, None, None, None, received))
    measures = HeadMeasures(entropy, distance, first, last, previous, own, after, received)
    return HeadOverview(largest, measures)


def _of_layer(record: AttentionRecord, rows: list[int], columns: ndarray) -> tuple[ndarray, Sums]:
    n_q, n_k = record.q.shape[1], record.k.shape[1]
    keys = record.k.float().repeat_interleave(record.n_heads // record.k.shape[0], dim=0).transpose(1, 2)
    out = np.zeros((record.n_heads, len(rows), len(columns)), dtype=np.float32)
    sums = Sums(record.n_heads, n_k, record.q.device)
    for index, pools in _together(rows, n_q, record.n_heads * n_k):
        start, end = pools[0], pools[-1]
        bias = total_bias(_rows(record.position_bias, start, end), _rows(record.bias, start, end))
        first, last = _seen(_rows(record.bias, start, end), n_k)
        if first == last:
            continue
        scores = torch.bmm(record.q[:, start:end].float(), keys[:, :, first:last]).mul_(record.scale)
        scores = record.scoring.bent(scores)
        if bias is not None:
            scores += bias[:, :, first:last]
        weights = weights_of(scores, _rows(record.sinks, start, end))  # [heads, queries of the pool, keys]
        _strongest(out[:, index : index + len(pools) - 1], weights, np.diff(pools).tolist(), columns, first, n_k)
        sums.add(weights, scores, start, first)
    return out, sums


def _together(rows: list[int], n_q: int, numbers: int) -> Iterator[tuple[int, list[int]]]:
    """Pools that are computed together: the place of the first, where each begins, and where the last one ends."""
    ends, first = [*rows[1:], n_q], 0
    for last, end in enumerate(ends):
        if last + 1 == len(ends) or (ends[last + 1] - rows[first]) * numbers > AT_ONCE:
            yield first, [*rows[first : last + 1], end]
            first = last + 1


def _strongest(out: ndarray, weights: Tensor, sizes: list[int], columns: ndarray, first: int, n_k: int) -> None:
    strongest = np.zeros((len(weights), len(sizes), n_k), dtype=np.float32)
    found = torch.stack([pool.amax(1) for pool in torch.split(weights, sizes, 1)], 1)
    strongest[:, :, first : first + weights.shape[2]] = found.cpu().numpy()
    out[:] = np.maximum.reduceat(strongest, columns, axis=2)


def _rows(bias: Tensor | None, start: int, end: int) -> Tensor | None:
    return bias if bias is None or bias.shape[1] == 1 else bias[:, start:end]


def _seen(mask: Tensor | None, n_k: int) -> tuple[int, int]:
    """The first key that one of the queries sees, and the one after the last."""
    if mask is None:
        return 0, n_k
    seen = (mask > -torch.inf).any(dim=0).any(dim=0).nonzero()
    return (0, 0) if not len(seen) else (int(seen[0]), int(seen[-1]) + 1)


# Which head is worth a look for a sentence: of those that do not rest, the one whose row says most about one other word.

TRIED = 16  # heads, from the largest weight on
ROWS = 128  # the last ones, by which a head is said to rest

RESTS = 0.5
FEWEST_ROWS = 3  # queries that see several keys: of fewer nothing is said


@dataclass(frozen=True)
class Rest:
    """The key on which a head rests, and its share of the attention (0 to 1)."""

    key: int
    share: float


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


# Whether a head rests: whether most of its attention lies on one token, whichever row asks.
#
# share_j = mean over the queries that see several keys of a[i, j]
#
# A head rests on the key of the largest share where that is more than `RESTS`, and more than twice what the key
# would get if every query gave all the same. Such a head says little about the sentence (an attention sink: Xiao et
# al. 2023, "Efficient Streaming Language Models with Attention Sinks").
def find_rest(weights: Float[ndarray, "n_q n_k"], reasons: UInt8[ndarray, "n_q n_k"]) -> Rest | None:
    """The resting place of a head with these weights; None where it does not rest.

    Args:
        reasons: Why a cell is masked, 0 where it is not.
    """
    return find_rests(weights[None], reasons)[0]


def find_rests(weights: Float[ndarray, "heads n_q n_k"], reasons: UInt8[ndarray, "n_q n_k"]) -> list[Rest | None]:
    """`find_rest` of several heads with one mask."""
    seen = reasons == 0
    choosing = seen.sum(1) > 1
    if choosing.sum() < FEWEST_ROWS:
        return [None] * len(weights)
    even = (seen[choosing] / seen[choosing].sum(1, keepdims=True)).mean(0)
    found = []
    for shares in weights[:, choosing].mean(1):
        key = int(shares.argmax())
        found.append(Rest(key, float(shares[key])) if shares[key] > max(RESTS, 2 * even[key]) else None)
    return found


def resting_head(trace: Trace, site: str, head: int) -> Rest | None:
    """`find_rest` of one head of a trace."""
    record = trace[site]
    return find_rest(record.pattern(head).float().cpu().numpy(), record.reason(head).cpu().numpy())
