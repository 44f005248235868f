"""Multi-head attention: softmax(q k^T / sqrt(d_head) + position bias + mask) v, in every head at once."""

from jaxtyping import Float
from torch import Tensor, nn

from vizformer.config import ModelConfig
from vizformer.model.forward_pass import AttentionCall
from vizformer.model.mixing import mix
from vizformer.model.norms import Norm, norm
from vizformer.model.positions import Rotation


class Attention(nn.Module):
    """The queries of `x` look at the keys of `source` and mix its values by their weights.

    head_h = softmax(q_h k_h^T / sqrt(d_head) + bias_h + mask) v_h,   out = [head_0; ...; head_H] W_O + b_O

    With fewer key/value heads than query heads, n_heads / n_kv_heads query heads in a row share one.  Where the config
    says so, a norm over d_head (or over all heads together) comes between W_Q and q_h, and between W_K and k_h, before
    they are turned; attention_scale stands in the place of 1 / sqrt(d_head).

    Source: Vaswani et al. 2017, section 3.2; Ainslie et al. 2023, "GQA"; Henry et al. 2020, "Query-Key Normalization".
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
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
        self, x: Float[Tensor, "b n_q d_model"], source: Float[Tensor, "b n_k d_model"], call: AttentionCall
    ) -> Float[Tensor, "b n_q d_model"]:
        """`source` is `x` itself in self-attention and the encoder's memory in cross-attention."""
        q = self.queries(x, call)  # [b, n_heads, n_q, d_head]
        k, v = call.cached() or self.keys_and_values(source, call)  # [b, n_kv_heads, n_k, d_head]
        q, k, v, mask, scale = call.edited(q, k, v, self.scale)
        z = mix(q, k, v, call.bias(mask, q.dtype), scale)  # [b, n_heads, n_q, d_head]
        call.record(q, k, v, mask, scale)
        z = call.heads(z, v)
        out: Tensor = self.W_O(z.transpose(1, 2).flatten(2))  # [b, n_q, n_heads * d_head] -> [b, n_q, d_model]
        return out

    def queries(self, x: Float[Tensor, "b n d_model"], call: AttentionCall) -> Float[Tensor, "b n_heads n d_head"]:
        """W_Q x (+ b_Q), cut into heads; normalised and turned by position if the model does so."""
        return self._heads(self.W_Q(x), self.q_norm, call.rotation)

    def keys_and_values(
        self, source: Float[Tensor, "b n d_model"], call: AttentionCall
    ) -> tuple[Float[Tensor, "b n_kv_heads n_k d_head"], Float[Tensor, "b n_kv_heads n_k d_head"]]:
        """W_K source and W_V source (+ biases), cut into heads; with a cache they follow those of the earlier
        positions.
        """
        k = self._heads(self.W_K(source), self.k_norm, call.rotation)  # [b, n_kv_heads, n, d_head]
        v = self._heads(self.W_V(source))  # [b, n_kv_heads, n, d_head]
        return call.append(k, v)

    def _heads(
        self, x: Float[Tensor, "b n width"], norm: Norm | None = None, rotation: Rotation | None = None
    ) -> Float[Tensor, "b h n d_head"]:
        """A projection cut into heads; normalised, then turned by position, where the model does so."""
        x = x.reshape(*x.shape[:2], -1, self.d_head).transpose(1, 2)  # [b, h, n, d_head]
        x = x if norm is None else norm(x)
        return x if rotation is None else rotation.turn(x)
