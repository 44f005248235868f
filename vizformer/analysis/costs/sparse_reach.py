"""Sparse masks compared: how many cells are computed, and how many layers it takes until the last token hears the first.

    window       query i sees the keys i-r .. i+r              cells ~ (2r + 1) n       layers ~ n / r
    longformer   and g global tokens, which see all            cells ~ (2r + 1 + 2g) n  2 layers (through a global token)
    bigbird      and b random keys for every query             cells ~ (2r + 1 + 2g + b) n

Source: Beltagy et al. 2020, "Longformer", section 3; Zaheer et al. 2020, "Big Bird", section 2; Child et al. 2019,
"Generating Long Sequences with Sparse Transformers".
"""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from jaxtyping import Bool, UInt8
from numpy import ndarray

from vizformer.model.mask_recipe import MaskRecipe
from vizformer.model.masks import Reason
from vizformer.model.sparse_masks import Kept

SparseKind = Literal["full", "window", "longformer", "bigbird"]
SPARSE_KINDS: tuple[SparseKind, ...] = get_args(SparseKind)


@dataclass(frozen=True)
class SparseSettings:
    """r keys on each side, g global tokens, b random keys; `causal`: none of them later than the query."""

    reach: int
    n_global: int
    n_random: int
    seed: int = 0
    causal: bool = False


@dataclass(frozen=True)
class SparseCost:
    kind: SparseKind
    cells: int  # of the map, that are computed
    layers: int | None  # until what is known of the first token has reached the last one; None: it never does
    # how many of the n tokens the last one hears of, after 1, 2, ... layers, until it hears of no more
    heard: tuple[int, ...]


def recipe(kind: SparseKind, s: SparseSettings) -> MaskRecipe | None:
    """The mask; None for full attention that is not causal."""
    if kind == "full":
        return MaskRecipe("causal") if s.causal else None
    if kind == "window":
        return MaskRecipe("window", reach=s.reach, causal=s.causal)
    n_random = s.n_random if kind == "bigbird" else 0
    return MaskRecipe("bigbird", reach=s.reach, n_global=s.n_global, n_random=n_random, seed=s.seed, causal=s.causal)


@dataclass(frozen=True)
class Cells:
    """A mask for n tokens, cell by cell."""

    reasons: UInt8[ndarray, "n n"]  # why a cell is blocked (`vizformer.model.Reason`), 0 where it is open
    kept: UInt8[ndarray, "n n"]  # why a cell of a mask with global tokens is open (`Kept`); 0 everywhere for the others

    @property
    def open(self) -> Bool[ndarray, "n n"]:
        return self.reasons == 0


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
