"""Multi-head attention: softmax(q k^T / sqrt(d_head) + position bias + mask) v, in every head at once."""

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from vizformer.config import ModelConfig
from vizformer.model.cache import Cache
from vizformer.model.edit import Edit
from vizformer.model.masks import Mask, total_bias
from vizformer.model.norm import norm
from vizformer.model.positions import Rotation
from vizformer.model.trace import Trace


class Attention(nn.Module):
    """The queries of `x` look at the keys of `source` and take home a mix of its values.

    head_h = softmax(q_h k_h^T / sqrt(d_head) + bias_h + mask) v_h,   out = [head_0; ...; head_H] W_O + b_O

    With fewer key/value heads than query heads, n_heads / n_kv_heads query heads in a row share one.  Where the config
    says so, a norm over d_head comes between W_Q and q_h, and between W_K and k_h, before they are turned; and
    attention_scale stands in the place of 1 / sqrt(d_head).

    Source: Vaswani et al. 2017, section 3.2; Ainslie et al. 2023, "GQA"; Henry et al. 2020, "Query-Key Normalization".
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.n_heads, self.n_kv_heads, self.d_head = config.n_heads, config.kv_heads, config.d_head
        self.own_scale = config.attention_scale  # None: 1 / sqrt(d_head)
        width, kv_width = self.n_heads * self.d_head, self.n_kv_heads * self.d_head
        self.W_Q = nn.Linear(config.d_model, width, bias=config.qkv_bias)
        self.W_K = nn.Linear(config.d_model, kv_width, bias=config.qkv_bias)
        self.W_V = nn.Linear(config.d_model, kv_width, bias=config.qkv_bias)
        self.W_O = nn.Linear(width, config.d_model, bias=config.out_bias)
        self.q_norm = norm(config, self.d_head) if config.qk_norm else None
        self.k_norm = norm(config, self.d_head) if config.qk_norm else None

    def forward(
        self,
        x: Float[Tensor, "b n_q d_model"],
        source: Float[Tensor, "b n_k d_model"],
        mask: Mask | None,
        *,
        site: str,
        rotation: Rotation | None = None,
        position_bias: Float[Tensor, "1 n_heads n_q n_all"] | None = None,
        trace: Trace | None = None,
        edit: Edit | None = None,
        cache: Cache | None = None,
    ) -> Float[Tensor, "b n_q d_model"]:
        """`source` is `x` itself in self-attention and the encoder's memory in cross-attention.

        `rotation` turns the queries, and the keys that are computed here, by the positions of `x`; `position_bias` is
        added to the scores, after they were scaled.
        """
        q = self._split_heads(self.W_Q(x))  # [b, n_heads, n_q, d_head]
        if self.q_norm is not None:
            q = self.q_norm(q)
        if rotation is not None:
            q = rotation.turn(q)
        k, v = self._keys_and_values(source, site, rotation, cache, own=source is x)  # [b, n_kv_heads, n_k, d_head]
        scale = self.d_head**-0.5 if self.own_scale is None else self.own_scale
        if edit is not None:
            q, k, v = edit.apply(f"{site}.q", q), edit.apply(f"{site}.k", k), edit.apply(f"{site}.v", v)
            mask, scale = edit.mask(site, mask, q, k), edit.scale(site, scale)
        if position_bias is not None:
            position_bias = position_bias.to(q.dtype)  # what is added, and recorded
        bias = total_bias(position_bias, None if mask is None else mask.bias)
        grouped = self.n_kv_heads != self.n_heads
        z = F.scaled_dot_product_attention(
            q, k, v, attn_mask=None if bias is None else bias.to(q.dtype), scale=scale, enable_gqa=grouped
        )  # [b, n_heads, n_q, d_head]
        if trace is not None:
            trace.record_attention(site, q, k, v, mask, scale, position_bias)
        out: Tensor = self.W_O(z.transpose(1, 2).flatten(2))  # [b, n_q, n_heads * d_head] -> [b, n_q, d_model]
        return out

    def _keys_and_values(
        self,
        source: Float[Tensor, "b n_k d_model"],
        site: str,
        rotation: Rotation | None,
        cache: Cache | None,
        own: bool,
    ) -> tuple[Float[Tensor, "b n_kv_heads n d_head"], Float[Tensor, "b n_kv_heads n d_head"]]:
        """Those of `source` and, in self-attention (`own`), of the positions before it in the cache."""
        if cache is not None and not own and site in cache.keys:
            return cache.keys[site], cache.values[site]  # the encoder's memory does not change
        k = self._split_heads(self.W_K(source))  # [b, n_kv_heads, n_k, d_head]
        v = self._split_heads(self.W_V(source))  # [b, n_kv_heads, n_k, d_head]
        if self.k_norm is not None:
            k = self.k_norm(k)
        if rotation is not None:
            k = rotation.turn(k)
        return (k, v) if cache is None else cache.append(site, k, v)

    def _split_heads(self, x: Float[Tensor, "b n width"]) -> Float[Tensor, "b h n d_head"]:
        return x.reshape(*x.shape[:2], -1, self.d_head).transpose(1, 2)
