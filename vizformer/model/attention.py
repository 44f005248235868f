"""Multi-head attention: softmax(q k^T / sqrt(d_head) + position bias + mask) v, in every head at once."""

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from vizformer.config import ModelConfig
from vizformer.model.forward_pass import ForwardPass
from vizformer.model.masks import Mask, total_bias
from vizformer.model.norms import Norm, norm


class Attention(nn.Module):
    """The queries of `x` look at the keys of `source` and mix its values by their weights.

    head_h = softmax(q_h k_h^T / sqrt(d_head) + bias_h + mask) v_h,   out = [head_0; ...; head_H] W_O + b_O

    With fewer key/value heads than query heads, n_heads / n_kv_heads query heads in a row share one.  Where the config
    says so, a norm over d_head comes between W_Q and q_h, and between W_K and k_h, before they are turned;
    attention_scale stands in the place of 1 / sqrt(d_head).

    Source: Vaswani et al. 2017, section 3.2; Ainslie et al. 2023, "GQA"; Henry et al. 2020, "Query-Key Normalization".
    """

    def __init__(self, config: ModelConfig, *, cross: bool = False) -> None:
        super().__init__()
        self.cross = cross  # between two texts there are no distances: no rotation, no position bias
        self.n_heads, self.n_kv_heads, self.d_head = config.n_heads, config.kv_heads, config.d_head
        self.own_scale = config.attention_scale  # None: 1 / sqrt(d_head)
        self.scale = self.d_head**-0.5 if self.own_scale is None else float(self.own_scale)
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
        run: ForwardPass,
        site: str,
    ) -> Float[Tensor, "b n_q d_model"]:
        """`source` is `x` itself in self-attention and the encoder's memory in cross-attention.

        `site` is the name of this attention in the model, e.g. "decoder.2.cross"; trace, edit and cache know it by this.
        """
        q = self.normed_and_turned(self._heads(self.W_Q(x)), self.q_norm, run)  # [b, n_heads, n_q, d_head]
        k, v = self.keys_and_values(source, run, site)  # [b, n_kv_heads, n_k, d_head]
        q, k, v, mask, scale = run.edited(site, q, k, v, mask, self.scale)
        distances = None if self.cross or run.position_bias is None else run.position_bias.to(q.dtype)
        bias = total_bias(distances, None if mask is None else mask.bias)  # [1 or b, 1 or n_heads, n_q, n_k]
        bias = None if bias is None else bias.to(q.dtype)
        shared = self.n_kv_heads != self.n_heads
        z = F.scaled_dot_product_attention(q, k, v, attn_mask=bias, scale=scale, enable_gqa=shared)
        run.record(site, q, k, v, mask, scale, distances)
        z = run.heads(site, z, v)  # [b, n_heads, n_q, d_head]
        out: Tensor = self.W_O(z.transpose(1, 2).flatten(2))  # [b, n_q, n_heads * d_head] -> [b, n_q, d_model]
        return out

    def keys_and_values(
        self, source: Float[Tensor, "b n d_model"], run: ForwardPass, site: str
    ) -> tuple[Float[Tensor, "b n_kv_heads n_k d_head"], Float[Tensor, "b n_kv_heads n_k d_head"]]:
        """W_K source and W_V source (+ biases), cut into heads.

        With a cache they follow those of the earlier positions; those of a memory are computed once.
        """
        if self.cross and run.cache is not None and site in run.cache.keys:
            return run.cache.keys[site], run.cache.values[site]
        k = self.normed_and_turned(self._heads(self.W_K(source)), self.k_norm, run)  # [b, n_kv_heads, n, d_head]
        v = self._heads(self.W_V(source))  # [b, n_kv_heads, n, d_head]
        return (k, v) if run.cache is None else run.cache.append(site, k, v)

    def _heads(self, x: Float[Tensor, "b n width"]) -> Float[Tensor, "b h n d_head"]:
        """A projection cut into heads."""
        return x.reshape(*x.shape[:2], -1, self.d_head).transpose(1, 2)  # [b, n, h * d_head] -> [b, h, n, d_head]

    def normed_and_turned(
        self, x: Float[Tensor, "b h n d_head"], norm: Norm | None, run: ForwardPass
    ) -> Float[Tensor, "b h n d_head"]:
        """The queries or keys of heads: normalised, then turned by position, where the model does so."""
        x = x if norm is None else norm(x)
        return x if self.cross or run.rotation is None else run.rotation.turn(x)
