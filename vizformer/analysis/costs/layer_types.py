"""Self-attention, recurrence and convolution compared: how far apart two tokens are, and what a layer costs.

After Table 1 and section 4 of Vaswani et al. 2017, with the exact numbers where the table has orders of growth.

    type of layer               cost per layer   steps in a row   longest path
    self-attention              n^2 d            1                1
    recurrent                   n d^2            n                n
    convolution, kernel k       k n d^2          1                n / k  (contiguous),  log_k n  (dilated)
    self-attention, window r    r n d            1                n / r

Here every kernel and window reaches back only (a position and the k - 1 before it), as in a language model, so that
each of the five can be compared with a recurrent one.  A path is counted in the layers (for the recurrent one: cells)
that what is known of the first token passes through until it reaches the last output.
"""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from jaxtyping import Bool, Int, UInt8
from numpy import ndarray

from vizformer.model.masks import Kept, MaskRecipe, Reason

LayerType = Literal["attention", "recurrent", "contiguous", "dilated", "restricted"]
LAYER_TYPES: tuple[LayerType, ...] = get_args(LayerType)

SparseKind = Literal["full", "window", "longformer", "bigbird"]
SPARSE_KINDS: tuple[SparseKind, ...] = get_args(SparseKind)


@dataclass(frozen=True)
class SparseCost:
    kind: SparseKind
    cells: int  # of the map, that are computed
    layers: int | None  # until what is known of the first token has reached the last one; None: it never does
    # how many of the n tokens the last one hears of, after 1, 2, ... layers, until it hears of no more
    heard: tuple[int, ...]


@dataclass(frozen=True)
class Cells:
    """A mask for n tokens, cell by cell."""

    reasons: UInt8[ndarray, "n n"]  # why a cell is blocked (`vizformer.model.Reason`), 0 where it is open
    kept: UInt8[ndarray, "n n"]  # why a cell of a mask with global tokens is open (`Kept`); 0 everywhere for the others

    @property
    def open(self) -> Bool[ndarray, "n n"]:
        return self.reasons == 0


@dataclass(frozen=True)
class Reach:
    """The layers, sequential steps and path length that connect the last of n positions with the first."""

    layers: int  # how many have to lie on top of each other
    sequential: int  # steps that have to wait for each other, in all these layers
    path: int  # layers or cells on the way from the first token to the last output


def reach(kind: LayerType, n: int, k: int = 3, r: int = 8) -> Reach:
    """Attention 1; recurrent n cells in one layer; contiguous ceil((n-1)/(k-1)), or with the window r, layers; dilated
    the least L with k^L >= n.  (The paper's n/k and log_k n, without what an order of growth leaves out.)

    Raises:
        ValueError: fewer than one token, or a kernel or window that does not reach the position before.
    """
    if n < 1 or k < 2 or r < 2:
        raise ValueError(f"n={n}, k={k}, r={r}: at least 1 token and widths of at least 2 are needed")
    if kind == "recurrent":
        return Reach(1, n, n)
    if kind == "attention":
        layers = 1
    elif kind == "dilated":
        layers = next(count for count in range(1, 64) if k**count >= n)
    else:
        width = k if kind == "contiguous" else r
        layers = max(1, -(-(n - 1) // (width - 1)))
    return Reach(layers, layers, layers)


def connections(kind: LayerType, n: int, k: int = 3, r: int = 8) -> Int[np.ndarray, "edges 4"]:
    """Who hears from whom: (position, level) -> (position, level), level 0 is the input, the last one the output.

    A recurrent layer's states are level 1: input t feeds state t, state t feeds state t + 1.
    """
    if kind == "recurrent":
        up = [(t, 0, t, 1) for t in range(n)]
        return np.array(up + [(t, 1, t + 1, 1) for t in range(n - 1)], dtype=np.int32)
    edges = []
    for level in range(reach(kind, n, k, r).layers):
        for to in range(n):
            edges += [(source, level, to, level + 1) for source in _heard(kind, to, level, k, r)]
    return np.array(edges, dtype=np.int32)


def longest_path(kind: LayerType, n: int, k: int = 3, r: int = 8) -> Int[np.ndarray, "steps 2"]:
    """The (position, level) on a shortest way from the first token to the last output: the longest of all pairs."""
    if kind == "recurrent":
        return np.array([(0, 0), *((t, 1) for t in range(n))], dtype=np.int32)
    layers = reach(kind, n, k, r).layers
    at, way = n - 1, [(n - 1, layers)]
    for level in reversed(range(layers)):
        at = min(_heard(kind, at, level, k, r))  # back from the output, as far as each layer reaches
        way.append((at, level))
    return np.array(way[::-1], dtype=np.int32)


def _heard(kind: LayerType, to: int, level: int, k: int, r: int) -> list[int]:
    """The positions that position `to` of level + 1 hears."""
    if kind == "attention":
        return list(range(to + 1))
    if kind == "dilated":
        found = [to - step * k**level for step in range(k)]
    else:
        found = [to - step for step in range(k if kind == "contiguous" else r)]
    return [max(source, 0) for source in found if source >= 0]


def table_cost(kind: LayerType, n: int, d: int, k: int = 3, r: int = 8) -> int:
    """The column "Complexity per Layer" of Table 1: multiplications of a layer that is d wide, without constants.

    Self-attention n^2 d, recurrent n d^2, convolution k n d^2, restricted r n d.  A window ends where the text does.
    """
    if kind == "attention":
        return n**2 * d
    if kind == "recurrent":
        return n * d**2
    if kind == "restricted":
        return min(r, n) * n * d
    return k * n * d**2


# Sparse masks compared: how many cells are computed, and how many layers it takes until the last token hears the
# first.
#
#     window       query i sees the keys i-r .. i+r              cells ~ (2r + 1) n       layers ~ n / r
#     longformer   and g global tokens, which see all            cells ~ (2r + 1 + 2g) n  2 layers (through a global token)
#     bigbird      and b random keys for every query             cells ~ (2r + 1 + 2g + b) n
#
# Source: Beltagy et al. 2020, "Longformer", section 3; Zaheer et al. 2020, "Big Bird", section 2; Child et al. 2019,
# "Generating Long Sequences with Sparse Transformers".
@dataclass(frozen=True)
class SparseSettings:
    """r keys on each side, g global tokens, b random keys; `causal`: none of them later than the query."""

    reach: int
    n_global: int
    n_random: int
    seed: int = 0
    causal: bool = False


def recipe(kind: SparseKind, s: SparseSettings) -> MaskRecipe | None:
    """The mask; None for full attention that is not causal."""
    if kind == "full":
        return MaskRecipe("causal") if s.causal else None
    if kind == "window":
        return MaskRecipe("window", reach=s.reach, causal=s.causal)
    n_random = s.n_random if kind == "bigbird" else 0
    return MaskRecipe("bigbird", reach=s.reach, n_global=s.n_global, n_random=n_random, seed=s.seed, causal=s.causal)


def sparse_cells(kind: SparseKind, n: int, s: SparseSettings) -> Cells:
    """Which keys each query sees, and why; the random keys are drawn once."""
    made, none = recipe(kind, s), np.zeros((n, n), np.uint8)
    if made is None:
        return Cells(none, none)
    if (parts := made.kept(n)) is not None:
        kept = parts.numpy()
        future = np.triu(np.ones((n, n), dtype=bool), 1) if s.causal else np.zeros((n, n), dtype=bool)
        closed = np.where(kept == Kept.NO, int(Reason.NOT_CHOSEN), 0)
        return Cells(np.where(future, int(Reason.FUTURE), closed).astype(np.uint8), kept)
    mask = made.mask(n)
    assert mask is not None  # neither padding nor cross-attention
    return Cells(mask.reason[0, 0].expand(n, n).cpu().numpy(), none)


def sparse_cost(kind: SparseKind, seen: Bool[ndarray, "n n"]) -> SparseCost:
    """The open cells of a mask counted, and what the last token hears of, layer by layer."""
    n = len(seen)
    hears, layers = np.zeros(n, dtype=bool), None
    heard: list[int] = []
    hears[-1] = True
    while True:
        wider = seen[hears].any(0) | hears  # what one more layer brings; the residual connection keeps its own
        if heard and (wider == hears).all():
            break
        hears = wider
        heard.append(int(hears.sum()))
        if layers is None and hears[0]:
            layers = len(heard)
    return SparseCost(kind, int(seen.sum()), layers, tuple(heard))


def cell_count(kind: SparseKind, n: int, s: SparseSettings) -> int:
    """The number of visible cells, equal to that of `sparse_cost`, computed without an n x n mask."""
    i = np.arange(n)
    last = i if s.causal else np.full(n, n - 1)  # the last key that is allowed
    allowed = last + 1
    if kind == "full":
        return int(allowed.sum())
    g = 0 if kind == "window" else min(s.n_global, n)
    low, high = np.maximum(i - s.reach, g), np.minimum(i + s.reach, last)
    kept = np.maximum(0, high - low + 1) + np.minimum(g, allowed)
    if kind == "bigbird":
        kept = np.minimum(kept + s.n_random, allowed)
    kept[:g] = allowed[:g]
    return int(kept.sum())


def multiplications(cells: int, d_head: int, n_heads: int) -> int:
    """q k^T and weights times v, of the cells that are computed: 2 * cells * d_head * n_heads."""
    return 2 * cells * d_head * n_heads
