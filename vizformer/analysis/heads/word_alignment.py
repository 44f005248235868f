"""Does cross-attention find the word that is being translated?

A map of tokens becomes one of words: what a word of several pieces attends to, and what attends to it.

    word map[a, b] = mean over the pieces i of query word a of  sum over the pieces j of key word b of  A[i, j]

Attention to a word is attention to any of its pieces, so these are added; a query word asks once with each of its
pieces, so these are averaged.  Rows of a softmax then still sum to 1.

Source: Clark et al. 2019, "What Does BERT Look At?", section 4.1.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray

from vizformer.analysis.heads.maps import head_maps
from vizformer.checkpoints import AnyCheckpoint
from vizformer.errors import VizformerError
from vizformer.model.trace import Trace
from vizformer.text import Token


def word_starts(words: Sequence[int | None], opened: Collection[int] = ()) -> Int[ndarray, " n_words"]:
    """Where the words of a text begin: neighbours of the same word are one, but for the words that are `opened`.

    `words`: of each token the index of its word, None for one that stands for itself; the pieces of `opened` stay apart.
    """
    parts = [0] if words else []
    for index, (before, here) in enumerate(pairwise(words), start=1):
        if here is None or here != before or here in opened:
            parts.append(index)
    return np.array(parts, dtype=np.int64)


def word_map(
    weights: Float[ndarray, "*maps n_q n_k"], queries: Int[ndarray, " query_words"], keys: Int[ndarray, " key_words"]
) -> Float[ndarray, "*maps query_words key_words"]:
    """Reduces a map of tokens to a map of words; see the module."""
    summed = np.add.reduceat(weights.astype(np.float64), keys, axis=-1)
    pieces = np.diff(queries, append=weights.shape[-2])
    return np.add.reduceat(summed, queries, axis=-2) / pieces[:, None]


@dataclass(frozen=True)
class AlignedPair:
    """A translation with its content words aligned by hand: (word of the target, characters of the source)."""

    source: str
    target: str
    links: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class AlignmentScore:
    """How often the most attended source token belongs to the aligned characters.

    Attributes:
        found: share of the content words, by layer, for rows that predict a word's first token ([n_layers]).
    """

    found: Float[ndarray, " n_layers"]
    words: int
    by_head: Float[ndarray, "n_layers n_heads"]

    @property
    def best_layer(self) -> int:
        return int(self.found.argmax())


def read_alignments(path: Path) -> list[AlignedPair]:
    """Lines of source, target and links ("word=characters word=characters ..."), separated by tabs.

    Raises:
        VizformerError: a line that is not of this form, or a link to text that is not in the pair.
    """
    pairs = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        parts = line.split("\t")
        links = tuple(tuple(item.split("=", 1)) for item in parts[2].split()) if len(parts) == 3 else ()
        legal = bool(links) and all(
            len(link) == 2 and link[0] in parts[1] and set(link[1]) <= set(parts[0]) for link in links
        )
        if not legal:
            raise VizformerError(
                "{path}, line {number}: write source, target and word=characters links, separated by tabs.",
                path=path.name,
                number=number,
            )
        pairs.append(AlignedPair(parts[0], parts[1], tuple((link[0], link[1]) for link in links)))
    return pairs


def alignment_score(checkpoint: AnyCheckpoint, pairs: Sequence[AlignedPair]) -> AlignmentScore:
    """Teacher-forced cross-attention against alignments by hand, a layer's heads averaged.

    The row that counts is the one from which the word's first token is predicted: the decoder stands on the token
    before it and looks for what to say.  The end mark of the source is left out of the choice: it is where heads rest.
    """
    hits: list[Float[ndarray, "n_layers heads_and_mean"]] = []
    for pair in pairs:
        trace = checkpoint.trace(pair.source, target=pair.target)
        found = alignment(trace)
        for link in linked(pair, trace.tokens["encoder"], trace.tokens["decoder"]):
            right = np.isin(np.arange(len(trace.tokens["encoder"])), link.columns)
            hits.append(np.concatenate([right[found.by_head[..., link.row]], right[found.mean[:, link.row, None]]], -1))
    shares = np.mean(hits, axis=0)
    return AlignmentScore(shares[:, -1], len(hits), shares[:, :-1])


@dataclass(frozen=True)
class Link:
    """A content word that was aligned by hand: the row that is there to choose its first token, and the source tokens
    that hold its characters.
    """

    word: str
    row: int
    columns: tuple[int, ...]


def linked(pair: AlignedPair, source: Sequence[Token], target: Sequence[Token]) -> tuple[Link, ...]:
    """The links of a pair as rows and columns of its maps, from the tokens of its two texts as they are encoded.

    (Generated tokens do not know where in the text they stand.)
    """
    found = []
    for word, characters in pair.links:
        first = pair.target.index(word)
        row = next(i for i, token in enumerate(target) if not token.special and token.end > first) - 1
        texts = [pair.source[token.start : token.end] for token in source]
        columns = (k for k, text in enumerate(texts) if any(one in characters for one in text))
        found.append(Link(word, row, tuple(columns)))
    return tuple(found)


@dataclass(frozen=True)
class Alignment:
    """The source token that each row of the decoder looks at most, of every head, and of the mean of a layer's (`weights`);
    the marks of the source are left out of the choice.
    """

    by_head: Int[ndarray, "n_layers n_heads n_q"]
    mean: Int[ndarray, "n_layers n_q"]
    weights: Float[ndarray, "n_layers n_q n_k"]


def alignment(trace: Trace) -> Alignment:
    """argmax_k a_ik over the real tokens of the source, for every head and for the mean over a layer's heads."""
    weights = head_maps(trace, "cross").weights  # [n_layers, n_heads, n_q, n_k]
    special = np.array([token.special for token in trace.tokens["encoder"]])
    real = ~special if not special.all() else special
    mean = weights.mean(axis=1)
    return Alignment(np.where(real, weights, -1.0).argmax(-1), np.where(real, mean, -1.0).argmax(-1), mean)


@dataclass(frozen=True)
class WordOrder:
    """How much the order changes on the way from source to target.

    Attributes:
        pairs: how many pairs of rows look at two different source tokens.
        crossed: those of them where the later row looks at the earlier token, (earlier row, later row).
    """

    pairs: int
    crossed: tuple[tuple[int, int], ...]


def word_order(chosen: Sequence[int], rows: Sequence[int]) -> WordOrder:
    """Counts crossings between these rows: i < j with k_i > k_j, where row i looks at source token k_i = chosen[i].

    Source: Kendall 1938, "A new measure of rank correlation" (the number of inversions).
    """
    pairs = [(i, j) for i, j in combinations(rows, 2) if chosen[i] != chosen[j]]
    return WordOrder(len(pairs), tuple((i, j) for i, j in pairs if chosen[i] > chosen[j]))


def telling_row(weights: Float[ndarray, "n_q n_k"], rows: Sequence[int]) -> int | None:
    """The row, of some rows, with the largest margin between its two largest weights; None where there is no choice."""
    if weights.shape[1] < 2 or not rows:
        return None
    top = np.sort(weights, -1)
    lead = top[:, -1] - top[:, -2]
    return max(rows, key=lambda row: float(lead[row]))
