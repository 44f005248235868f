"""All numbers of a layer of latent attention (`vizformer.model.latent_attention`), recomputed in float64.

c' = RMSNorm(x W_DQ),   q = c' W_Q,   c = RMSNorm(x W_DKV),   r = x W_KR,   k = [r; c W_K],   v = c W_V
"""

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from torch import nn

from vizformer.explain import norms
from vizformer.explain.arrays import float64, is_half, stored
from vizformer.explain.step import sizes
from vizformer.model.latent_attention import LatentAttention


class LatentNumbers:
    """All numbers of a layer before positions turn them, in float64; `rows` go in.

    Attributes:
        asked, asks: x W_DQ and its norm; the rows themselves where queries have no latent.
        down, latent, shared: x W_DKV, its norm, and x W_KR.
        q, k, v: head by head.
    """

    def __init__(self, layer: LatentAttention, rows: Float[ndarray, "n d_model"]) -> None:
        self.layer, self.rows, self.dtype = layer, rows, layer.W_Q.weight.dtype
        self.asked = self.asks = rows
        if layer.W_DQ is not None and layer.query_norm is not None:
            self.asked = self._through(rows, layer.W_DQ)
            self.asks = norms.normalise(self.asked, layer.query_norm)
        self.down, self.shared = self._through(rows, layer.W_DKV), self._through(rows, layer.W_KR)
        self.latent = norms.normalise(self.down, layer.latent_norm)
        self.q, content, self.v = (
            self._through(source, linear).reshape(len(rows), layer.n_heads, -1).transpose(1, 0, 2)
            for source, linear in ((self.asks, layer.W_Q), (self.latent, layer.W_K), (self.latent, layer.W_V))
        )
        beside = np.broadcast_to(self.shared, (layer.n_heads, *self.shared.shape))
        self.k: ndarray = np.concatenate([beside, content], axis=-1)

    def _through(self, rows: ndarray, linear: nn.Linear) -> ndarray:
        found = rows @ float64(linear.weight).T
        return stored(found if linear.bias is None else found + float64(linear.bias), self.dtype)

    def own(self, linear: nn.Linear, head: int) -> slice:
        """Which rows of a matrix are a head's."""
        width = linear.out_features // self.layer.n_heads
        return slice(head * width, (head + 1) * width)

    def value_sizes(self, head: int | None = None) -> ndarray | float:
        """The size of the terms behind v, of one head or of all."""
        if not is_half(self.dtype):
            return 0.0
        found = sizes(self.latent, float64(self.layer.W_V.weight).T)
        by_head: ndarray = found.reshape(len(found), self.layer.n_heads, -1).transpose(1, 0, 2)
        return by_head if head is None else by_head[head]
