"""What is kept while texts are measured: sums, never a map of one text.

Sums of texts 0..k and of texts k+1..m add up to those of 0..m, so that several workers can share a corpus and a run that
was cut off goes on.  They are float64 and added in the order of the texts: whoever adds them, the result is the same.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy import ndarray
from torch import Tensor

from vizformer.analysis.corpus_heads.measures import MEASURES, MOST, SMALL_IS_STRONG, TARGETS, LayerMeasures

CORNER = 32  # positions of a text, from its first one, of which maps are compared with each other
MOST_COMPARED = 1024  # heads of a kind that are compared with each other: a number for every pair
BINS = 20  # of the largest weight of a row, from 0 to 1
MOST_KEPT, MOST_VALUES = 1000, 1 << 22  # texts of which values and tokens are kept, and values of a kind, of 4 bytes
LEAST_BESIDE = 0.1  # a row of a map is compared where at least this much of its attention lies beside the sinks
_SIGN = np.array([-1.0 if name in SMALL_IS_STRONG else 1.0 for name in MEASURES])


@dataclass
class Sums:
    """The sums over texts for one kind of attention."""

    # count, total, squares: of every measure: how many texts say something, the sum of their values and of the squares
    # of these
    count: Int[ndarray, "n_measures n_layers n_heads"]
    total: Float[ndarray, "n_measures n_layers n_heads"]
    squares: Float[ndarray, "n_measures n_layers n_heads"]
    # strongest, where: the value of the text where a measure is strongest (largest, or smallest for those of
    # SMALL_IS_STRONG, with the sign turned round), and the number of that text; -1 where there is none
    strongest: Float[ndarray, "n_measures n_layers n_heads"]
    where: Int[ndarray, "n_measures n_layers n_heads"]
    # rows, hits: see `LayerMeasures`
    rows: Int[ndarray, "n_targets n_layers n_heads"]
    hits: Int[ndarray, "n_targets n_layers n_heads"]
    cells: Int[ndarray, "n_layers corner corner"]  # how many texts have a visible cell, of the first CORNER positions
    # sum over texts of (pattern - even)[i, j] there, where even is 1 / (keys that i sees)
    maps: Float[ndarray, "n_layers n_heads corner corner"]
    energy: Float[ndarray, "n_layers n_heads corner corner"]  # sum over texts of the square of the same
    choice: Int[ndarray, " n_layers"]  # in how many rows of the corners two keys or more are seen beside the sinks
    beside: Int[ndarray, "n_layers n_heads"]  # in how many of these a head leaves LEAST_BESIDE or more beside them
    # products, lengths, compared: of every two heads, see `add_likeness`; empty for more than MOST_COMPARED
    products: Float[ndarray, "heads heads"]
    lengths: Float[ndarray, "heads heads"]
    compared: Int[ndarray, "heads heads"]
    # numbers, values: of the first `n_kept` texts: their numbers, and every measure there
    numbers: Int[ndarray, " n_kept"]
    values: Float[ndarray, "n_kept n_measures n_layers n_heads"]
    # in how many rows of these texts, of those that see two keys or more, the largest weight is in which of BINS equal
    # parts of 0 to 1
    largest: Int[ndarray, "n_layers n_heads bins"]
    # codes, counts: how often which token was looked at or did look, see `looks`; codes ascend
    codes: Int[ndarray, " n_codes"]
    counts: Int[ndarray, " n_codes"]

    @classmethod
    def empty(cls, n_layers: int, n_heads: int) -> "Sums":
        heads = n_layers * n_heads
        pairs = (heads, heads) if heads <= MOST_COMPARED else (0, 0)
        of_measures, of_targets = (len(MEASURES), n_layers, n_heads), (len(TARGETS), n_layers, n_heads)
        return cls(
            np.zeros(of_measures, np.int64),
            np.zeros(of_measures),
            np.zeros(of_measures),
            np.full(of_measures, -np.inf),
            np.full(of_measures, -1, np.int64),
            np.zeros(of_targets, np.int64),
            np.zeros(of_targets, np.int64),
            np.zeros((n_layers, CORNER, CORNER), np.int64),
            np.zeros((n_layers, n_heads, CORNER, CORNER)),
            np.zeros((n_layers, n_heads, CORNER, CORNER)),
            np.zeros(n_layers, np.int64),
            np.zeros((n_layers, n_heads), np.int64),
            np.zeros(pairs),
            np.zeros(pairs),
            np.zeros(pairs, np.int64),
            np.zeros(0, np.int64),
            np.zeros((0, *of_measures), np.float32),
            np.zeros((n_layers, n_heads, BINS), np.int64),
            np.zeros(0, np.int64),
            np.zeros(0, np.int64),
        )

    @property
    def keeps(self) -> int:
        """The number of first texts whose values and tokens are kept; it is limited so that memory is bounded."""
        return max(10, min(MOST_KEPT, MOST_VALUES // max(1, self.count.size)))

    def add_layer(self, text: int, layer: int, found: LayerMeasures) -> None:
        """Adds the measures of text number `text` for a layer; calls come in increasing order of `text`."""
        values = found.values.double().cpu().numpy()
        known = np.isfinite(values)
        filled = np.where(known, values, 0.0)
        self.count[:, layer] += known
        self.total[:, layer] += filled
        self.squares[:, layer] += filled**2
        self._strongest(layer, np.where(known, values * _SIGN[:, None], -np.inf), np.full(values.shape, text))
        self.rows[:, layer] += found.rows.cpu().numpy()
        self.hits[:, layer] += found.hits.cpu().numpy()

    def add_corner(
        self, layer: int, patterns: Float[Tensor, "n_heads n_q n_k"], visible: Bool[Tensor, "n_q n_k"]
    ) -> None:
        """Adds the first CORNER positions of one text's maps, for `positional_share`."""
        even = visible / visible.sum(-1, keepdim=True).clamp(min=1)
        seen = visible[:CORNER, :CORNER].cpu()
        maps = torch.where(seen, (patterns - even)[:, :CORNER, :CORNER].cpu(), 0.0)
        n_q, n_k = seen.shape
        self.cells[layer, :n_q, :n_k] += seen.numpy()
        self.maps[layer, :, :n_q, :n_k] += maps.numpy()
        self.energy[layer, :, :n_q, :n_k] += maps.double().square().numpy()

    def beside_sinks(
        self,
        layer: int,
        patterns: Float[Tensor, "n_heads n_q n_k"],
        visible: Bool[Tensor, "n_q n_k"],
        sinks: Bool[Tensor, " n_k"],
    ) -> tuple[Float[Tensor, "n_heads corner_q corner_k"], Bool[Tensor, "n_heads corner_q"]]:
        """The first positions of one text's maps without the columns of the sinks, for `add_likeness`.

        A row is shared anew among the n other keys that it sees, less an even look, pattern / left - 1 / n with
        left = their sum of the pattern; it is 0, and does not count, where n < 2 or left < LEAST_BESIDE.
        """
        patterns, others = patterns[:, :CORNER].cpu(), (visible & ~sinks)[:CORNER].cpu()
        n, left = others.sum(-1), (patterns * others).sum(-1)  # [n_q], [n_heads, n_q]
        counts = (n > 1) & (left >= LEAST_BESIDE)
        self.choice[layer] += int((n > 1).sum())
        self.beside[layer] += counts.sum(-1).numpy()
        maps = patterns / left.clamp(min=LEAST_BESIDE)[..., None] - 1 / n.clamp(min=1)[:, None]
        return torch.where(others & counts[..., None], maps, 0.0)[..., :CORNER], counts

    def add_likeness(self, layers: list[tuple[Float[Tensor, "n_heads n_q n_k"], Bool[Tensor, "n_heads n_q"]]]) -> None:
        """One text's maps beside the sinks, of every two heads over the rows that count for both.

        products    A . B          lengths[A, B]    |A|^2 in the rows that count for B          compared    these rows
        """
        if not self.products.size:
            return
        maps, counts = (torch.cat(parts).double() for parts in zip(*layers, strict=True))
        self.products += (maps.flatten(1) @ maps.flatten(1).T).numpy()
        self.lengths += (maps.square().sum(-1) @ counts.T).numpy()
        self.compared += (counts @ counts.T).long().numpy()

    def add_values(
        self, text: int, layers: list[Float[Tensor, "n_measures n_heads"]], looks: list[Int[Tensor, " n"]]
    ) -> None:
        """Keeps the measures of one text, and the codes of `looks` of its layers."""
        self._count(*np.unique(torch.cat(looks).numpy(), return_counts=True))
        self.numbers = np.append(self.numbers, text)
        self.values = np.concatenate([self.values, torch.stack(layers, 1).float().cpu().numpy()[None]])

    def looks(
        self,
        layer: int,
        patterns: Float[Tensor, "n_heads n_q n_k"],
        visible: Bool[Tensor, "n_q n_k"],
        sinks: Bool[Tensor, " n_k"],
        queries: Int[Tensor, " n_q"],
        keys: Int[Tensor, " n_k"],
    ) -> Int[Tensor, " n"]:
        """Counts the largest weights of one text's rows; codes of the tokens of rows that *pick*.

        A row picks where it gives more than MOST of its attention to one key that is no sink.  There is, for each time,
        code = (role * heads + head) << 32 | id with the number of a head among all layers,

            role 0    the key that is picked      role 1    the query that picks
            role 2    every query that sees two keys or more, for head 0 of a layer
        """
        several, at_head = visible.sum(-1) > 1, layer * len(patterns)
        best, key = patterns[:, several].nan_to_num().max(-1)  # [n_heads, rows]
        bins = (best * BINS).long().clamp(0, BINS - 1)
        rows = torch.nn.functional.one_hot(bins, BINS).sum(1)
        self.largest[layer] += (rows * (best > 0).any(1)[:, None]).numpy()  # none of a head that sees nothing
        head, row = torch.nonzero((best > MOST) & ~sinks[key], as_tuple=True)
        heads = self.count.shape[1] * self.count.shape[2]
        looking = queries[several]
        codes = [(at_head + head) << 32 | keys[key[head, row]], (heads + at_head + head) << 32 | looking[row]]
        return torch.cat([*codes, (2 * heads + at_head) << 32 | looking])

    def _count(self, codes: Int[ndarray, " n"], counts: Int[ndarray, " n"]) -> None:
        self.codes, place = np.unique(np.concatenate([self.codes, codes]), return_inverse=True)
        total = np.zeros(len(self.codes), np.int64)
        np.add.at(total, place, np.concatenate([self.counts, counts]))
        self.counts = total

    def add(self, later: "Sums") -> None:
        """The sums of texts that come after those of these."""
        kept = {"numbers", "values", "codes", "counts"}
        for name in {field.name for field in fields(self)} - {"strongest", "where"} - kept:
            getattr(self, name)[...] += getattr(later, name)
        self.numbers = np.concatenate([self.numbers, later.numbers])
        self.values = np.concatenate([self.values, later.values])
        self._count(later.codes, later.counts)
        for layer in range(self.count.shape[1]):
            self._strongest(layer, later.strongest[:, layer], later.where[:, layer])

    def _strongest(self, layer: int, values: ndarray, texts: ndarray) -> None:
        """The first of several that are equally strong stays."""
        better = values > self.strongest[:, layer]
        self.strongest[:, layer] = np.where(better, values, self.strongest[:, layer])
        self.where[:, layer] = np.where(better, texts, self.where[:, layer])

    def arrays(self, prefix: str) -> dict[str, ndarray]:
        """The arrays by name, as a file stores them."""
        return {f"{prefix}.{field.name}": getattr(self, field.name) for field in fields(self)}

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, ndarray], prefix: str) -> "Sums":
        return cls(**{field.name: arrays[f"{prefix}.{field.name}"] for field in fields(cls)})
