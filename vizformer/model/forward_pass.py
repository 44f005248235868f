"""The inputs of a forward pass besides x: masks, positions, the cache, and the trace and edit that record or change the
numbers.

A `ForwardPass` is a value that is handed down from the model to its layers.  No module keeps any of it, so that one
model can serve many threads.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from vizformer.model.cache import Cache
from vizformer.model.edit import Edit
from vizformer.model.masks import Mask, total_bias
from vizformer.model.positions import Rotation
from vizformer.model.trace import Trace


@dataclass(frozen=True)
class AttentionCall:
    """The inputs of an attention call besides x; its methods are the places where the call is recorded or edited.

    Attributes:
        site: its name in the model, e.g. "decoder.2.cross"; trace, edit and cache know it by this name.
        mask: who may look at whom; None where every query sees every key.
        rotation: turns the queries, and the keys that are computed here, by the positions of their tokens.
        position_bias: added to the scores, after they were scaled.
        is_cross: whether the keys and values are those of the encoder's memory, which does not change.
    """

    site: str
    mask: Mask | None = None
    rotation: Rotation | None = None
    position_bias: Float[Tensor, "b n_heads n_q n_k"] | None = None
    trace: Trace | None = None
    edit: Edit | None = None
    cache: Cache | None = None
    is_cross: bool = False

    def cached(self) -> tuple[Float[Tensor, "b h n_k d"], Float[Tensor, "b h n_k d_value"]] | None:
        """The keys and values of the memory, once they have been computed; None where some are still to compute."""
        if self.cache is None or not self.is_cross or self.site not in self.cache.keys:
            return None
        return self.cache.keys[self.site], self.cache.values[self.site]

    def append(
        self, k: Float[Tensor, "b h n d"], v: Float[Tensor, "b h n d_value"]
    ) -> tuple[Float[Tensor, "b h n_k d"], Float[Tensor, "b h n_k d_value"]]:
        """Keys and values behind those of the positions before them, where there is a cache."""
        return (k, v) if self.cache is None else self.cache.append(self.site, k, v)

    def edited(
        self, q: Tensor, k: Tensor, v: Tensor, scale: float
    ) -> tuple[Tensor, Tensor, Tensor, Mask | None, float]:
        """q, k, v, the mask and the scale of the scores, with what was set by hand."""
        site, edit = self.site, self.edit
        if edit is None:
            return q, k, v, self.mask, scale
        q, k, v = edit.apply(f"{site}.q", q), edit.apply(f"{site}.k", k), edit.apply(f"{site}.v", v)
        return q, k, v, edit.mask(site, self.mask, q, k), edit.scale(site, scale)

    def bias(self, mask: Mask | None, dtype: torch.dtype) -> Float[Tensor, "b h n_q n_k"] | None:
        """The sum of position bias and mask, which is added to the scores; a dimension of size 1 broadcasts."""
        bias = total_bias(self._position_bias(dtype), None if mask is None else mask.bias)
        return None if bias is None else bias.to(dtype)

    def heads(self, z: Float[Tensor, "b h n_q d"], v: Float[Tensor, "b h_kv n_k d"]) -> Float[Tensor, "b h n_q d"]:
        """z of the heads, with the numbers that an edit sets."""
        return z if self.edit is None else self.edit.heads(self.site, z, v)

    def record(self, q: Tensor, k: Tensor, v: Tensor, mask: Mask | None, scale: float) -> None:
        """Records the operands in the trace, as the fused kernel received them."""
        if self.trace is not None:
            bias = self._position_bias(q.dtype)
            self.trace.record_attention(self.site, q, k, v, mask, scale, bias)

    def _position_bias(self, dtype: torch.dtype) -> Tensor | None:
        """The position bias, rounded to the dtype of the scores."""
        return None if self.position_bias is None else self.position_bias.to(dtype)


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

    def self_attention(self, layer: str, *, windowed: bool) -> AttentionCall:
        """The inputs of a layer's self-attention; `layer` is, e.g., "decoder.2"."""
        mask = self.windowed if windowed else self.mask
        site = f"{layer}.self"
        return AttentionCall(site, mask, self.rotation, self.position_bias, self.trace, self.edit, self.cache)

    def cross_attention(self, layer: str) -> AttentionCall:
        """The inputs of a layer's cross-attention. It has no position bias: between two texts there is no distance."""
        site = f"{layer}.cross"
        return AttentionCall(site, self.memory_mask, trace=self.trace, edit=self.edit, cache=self.cache, is_cross=True)

    def output(self, name: str, y: Float[Tensor, "b n d"]) -> Float[Tensor, "b n d"]:
        """The output of a sublayer, or the neurons of a feed-forward, as the edit leaves them."""
        return y if self.edit is None else self.edit.sublayer(name, y)

    def layer(
        self, name: str, entering: Float[Tensor, "b n d_model"], x: Float[Tensor, "b n d_model"]
    ) -> Float[Tensor, "b n d_model"]:
        """The output of a layer, which the edit may skip."""
        return x if self.edit is None else self.edit.layer(name, entering, x)

    def point(self, name: str, x: Float[Tensor, "b n d_model"]) -> Float[Tensor, "b n d_model"]:
        """A named point of the residual stream: it is edited here if the edit says so, and recorded."""
        if self.edit is not None:
            x = self.edit.apply(name, x)
        if self.trace is not None:
            self.trace.record_residual(name, x)
        return x
