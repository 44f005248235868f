"""The KV cache: what a decoder keeps of the positions it has seen, so that it computes only the new ones."""

from dataclasses import dataclass, field

import torch
from jaxtyping import Float, Int
from torch import Tensor


@dataclass
class Cache:
    """Keys and values per attention site, [b, n_kv_heads, n, d_head]; passed to `decode`, never kept by a module.

    Self-attention appends the new positions' keys and values; cross-attention projects the encoder's memory once.
    The bytes grow with the length: 2 * n_layers * n_kv_heads * d_head * n numbers per sequence for self-attention.
    """

    keys: dict[str, Tensor] = field(default_factory=dict)
    values: dict[str, Tensor] = field(default_factory=dict)
    length: int = 0  # positions that have been decoded

    def append(
        self, site: str, k: Float[Tensor, "b h n_new d"], v: Float[Tensor, "b h n_new d_value"]
    ) -> tuple[Float[Tensor, "b h n d"], Float[Tensor, "b h n d_value"]]:
        """Adds new positions to a site and returns all of its keys and values."""
        if site in self.keys:
            k, v = torch.cat([self.keys[site], k], dim=2), torch.cat([self.values[site], v], dim=2)
        self.keys[site], self.values[site] = k, v
        return k, v

    def select(self, rows: Int[Tensor, " b_new"]) -> None:
        """Keeps these sequences of the batch, in this order (beam search drops some and duplicates others)."""
        for kept in self._all:
            for site, tensor in kept.items():
                kept[site] = tensor[rows]

    @property
    def _all(self) -> tuple[dict[str, Tensor], ...]:
        return self.keys, self.values

    @property
    def nbytes(self) -> int:
        return sum(t.numel() * t.element_size() for kept in self._all for t in kept.values())
