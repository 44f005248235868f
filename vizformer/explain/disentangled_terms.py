"""The terms of the scores that compare contents with distances, recomputed in float64.

The row of each distance is asked of the model (`vizformer.model.disentangled_attention.relative_rows`): its logarithms are of float32,
and rounding decides where a stretch of distances ends.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy import ndarray
from torch import Tensor, nn

from vizformer.explain.arrays import float64, stored
from vizformer.explain.norms import through
from vizformer.model.attention import Attention
from vizformer.model.disentangled_attention import RelativeTable
from vizformer.model.norms import Norm
from vizformer.model.transformer import Transformer


@dataclass(frozen=True)
class DistanceTerms:
    """What one layer's scores compare contents with (He et al. 2021, "DeBERTa", section 3.1)."""

    attention: Attention  # whose matrices make keys and queries of the vectors
    weight: Tensor  # the vectors of the distances, the whole table
    norm: Norm | None  # which they go through, if any
    # span, furthest: see `relative_rows`
    span: int
    furthest: int | None
    first: int  # the first row of the table that the text needs
    rows: Int[ndarray, "n n"]  # which of those from there on is that of query i and key j

    @property
    def dtype(self) -> torch.dtype:
        """What the model computes in."""
        return self.weight.dtype

    @property
    def n_terms(self) -> int:
        """How many terms a score has, that of the contents included."""
        return 1 + self.attention.has_c2p + self.attention.has_p2c

    @property
    def shared(self) -> bool:
        """Whether W_K and W_Q of the contents serve."""
        return self.attention.relative is None

    @property
    def table(self) -> Float[ndarray, "n_rows d_model"]:
        """The rows of the table that the text needs, as they were learned."""
        return float64(self.weight[self.first : self.first + int(self.rows.max()) + 1])

    @cached_property
    def vectors(self) -> Float[ndarray, "n_rows d_model"]:
        """The same, normalised where the model does so."""
        return through(self.table, self.norm)

    def linear(self, letter: str) -> nn.Linear | None:
        """The matrix that makes keys ("K") or queries ("Q") of the vectors; None where there is no such term."""
        if not (self.attention.has_c2p if letter == "K" else self.attention.has_p2c):
            return None
        found = getattr(self.attention if self.attention.relative is None else self.attention.relative, f"W_{letter}")
        assert isinstance(found, nn.Linear)
        return found

    @cached_property
    def keys(self) -> Float[ndarray, "n_heads n_rows d_head"] | None:
        """The keys of the vectors, in all heads; None where queries are not compared with distances."""
        return self._made("K")

    @cached_property
    def queries(self) -> Float[ndarray, "n_heads n_rows d_head"] | None:
        """The queries of the vectors; None where keys are not compared with distances."""
        return self._made("Q")

    def _made(self, letter: str) -> Float[ndarray, "n_heads n_rows d_head"] | None:
        linear = self.linear(letter)
        if linear is None:
            return None
        rows = self.vectors @ float64(linear.weight).T + (0.0 if linear.bias is None else float64(linear.bias))
        heads = stored(rows, self.dtype).reshape(len(rows), -1, self.attention.d_head)  # [n_rows, n_heads, d_head]
        return np.moveaxis(heads, 1, 0)

    def c2p(self, q: Float[ndarray, "h n d_head"], power: int = 1) -> Float[ndarray, "h n n"] | None:
        """q_i . k^r_d(i,j), before it is scaled; with `power` 2 the sums of the squares of the products."""
        if self.keys is None:
            return None
        return np.take_along_axis(q**power @ np.swapaxes(self.keys**power, 1, 2), self.rows[None], axis=2)

    def p2c(self, k: Float[ndarray, "h n d_head"], power: int = 1) -> Float[ndarray, "h n n"] | None:
        """k_j . q^r_d(i,j), likewise."""
        if self.queries is None:
            return None
        return np.take_along_axis(self.queries**power @ np.swapaxes(k**power, 1, 2), self.rows[None], axis=1)

    def keys_of(self, head: int, query: int) -> Float[ndarray, "n_k d_head"] | None:
        """For one head and query, the key of the distance to each key."""
        return None if self.keys is None else self.keys[head, self.rows[query]]

    def queries_of(self, head: int, query: int) -> Float[ndarray, "n_k d_head"] | None:
        """For one head and query, the query of the distance to each key."""
        return None if self.queries is None else self.queries[head, self.rows[query]]

    def row(
        self, q: Float[ndarray, " d_head"], k: Float[ndarray, "n_k d_head"], head: int, query: int, power: int = 1
    ) -> Float[ndarray, " n_k"]:
        """Both terms of one head and query, before they are scaled; `power` as in `c2p`."""
        total = np.zeros(len(k))
        if (keys := self.keys_of(head, query)) is not None:
            total = total + keys**power @ q**power
        if (queries := self.queries_of(head, query)) is not None:
            total = total + (k**power * queries**power).sum(-1)
        return total


def terms_under_root(distances: object, own: float | None, d_head: int) -> int:
    """The n of a scale of 1 / sqrt(n d_head): 1 where a model has no scale of its own; 0 where that is of another form."""
    if own is None:
        return 1
    n = distances.n_terms if isinstance(distances, DistanceTerms) else 1
    return n if n > 1 and math.isclose(own, (n * d_head) ** -0.5, rel_tol=1e-6) else 0


def distance_terms(model: Transformer, stack: str, layer: int, n: int) -> DistanceTerms | None:
    """Those of a layer for a text of `n` tokens; None where its scores have no such terms."""
    module = model.encoder if stack == "encoder" else model.decoder
    table = None if module is None else module.distances
    if module is None or table is None:
        return None
    assert isinstance(table, RelativeTable)
    found = table(n)
    attention = module.layers[layer].self_attention
    assert isinstance(attention, Attention)
    weight: Tensor = table.vectors.weight
    return DistanceTerms(
        attention, weight.detach(), table.norm, table.span, table.furthest, found.first, found.rows.cpu().numpy()
    )
