"""The inputs of a forward pass besides x: masks, positions, the cache, and the trace and edit that record or change the
numbers.

A `ForwardPass` is a value that is handed down from the model to its layers.  No module keeps any of it, so that one
model can serve many threads.
"""

from dataclasses import dataclass, field

import torch
from jaxtyping import Float, Int
from torch import Tensor

from vizformer.model.edit import Edit
from vizformer.model.masks import Mask
from vizformer.model.positions import Rotation
from vizformer.model.trace import Trace


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


@dataclass(frozen=True)
class ForwardPass:
    """The inputs of a stack besides x.

    Attributes:
        mask: that of self-attention; None: every position sees every other one.
        windowed: replaces `mask` in the layers that have a sliding window.
        rotation: turns the queries and keys of self-attention (rotary positions).
        position_bias: is added to the scores of self-attention, the same in all layers (ALiBi, T5).
        memory: the encoder's output, which cross-attention looks at.
        memory_mask: which of its positions may be seen.
        trace: where the numbers are recorded.
        edit: the numbers that are set by hand.
        cache: keys and values of the positions before x, and of the memory.
    """

    mask: Mask | None = None
    windowed: Mask | None = None
    rotation: Rotation | None = None
    position_bias: Float[Tensor, "1 n_heads n n_all"] | None = None
    memory: Float[Tensor, "b n_memory d_model"] | None = None
    memory_mask: Mask | None = None
    trace: Trace | None = None
    edit: Edit | None = None
    cache: Cache | None = None

    def point(self, name: str, x: Float[Tensor, "b n d_model"]) -> Float[Tensor, "b n d_model"]:
        """A named point of the residual stream: it is edited here if the edit says so, and recorded."""
        x = x if self.edit is None else self.edit.apply(name, x)
        if self.trace is not None:
            self.trace.record_residual(name, x)
        return x

    def output(self, name: str, y: Float[Tensor, "b n d"]) -> Float[Tensor, "b n d"]:
        """The output of a sublayer, or the neurons of a feed-forward, as the edit leaves them."""
        return y if self.edit is None else self.edit.patched(name, y)

    def layer(
        self, name: str, entering: Float[Tensor, "b n d_model"], x: Float[Tensor, "b n d_model"]
    ) -> Float[Tensor, "b n d_model"]:
        """The output of a layer, which the edit may skip."""
        return entering if self.edit is not None and name in self.edit.skipped else x

    def edited(
        self, site: str, q: Tensor, k: Tensor, v: Tensor, mask: Mask | None, scale: float
    ) -> tuple[Tensor, Tensor, Tensor, Mask | None, float]:
        """The operands of an attention call, its mask and the scale of its scores, with what was set by hand."""
        edit = self.edit
        if edit is None:
            return q, k, v, mask, scale
        q, k, v = edit.apply(f"{site}.q", q), edit.apply(f"{site}.k", k), edit.apply(f"{site}.v", v)
        return q, k, v, edit.mask(site, mask, q, k), edit.scale(site, scale)

    def heads(
        self, site: str, z: Float[Tensor, "b h n_q d"], v: Float[Tensor, "b h_kv n_k d"]
    ) -> Float[Tensor, "b h n_q d"]:
        """z of the heads of an attention call, with the numbers that an edit sets."""
        return z if self.edit is None else self.edit.heads(site, z, v)

    def record(
        self,
        site: str,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        mask: Mask | None,
        scale: float,
        position_bias: Tensor | None,
    ) -> None:
        """Records the operands of an attention call in the trace, as the fused kernel received them."""
        if self.trace is not None:
            self.trace.record_attention(site, q, k, v, mask, scale, position_bias)
