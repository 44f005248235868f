"""Multi-head latent attention: the keys and values of all heads are made of one short vector for each token.

Source: DeepSeek-AI 2024, "DeepSeek-V2: A Strong, Economical, and Efficient Mixture-of-Experts Language Model", section 2.1.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from vizformer.config import ModelConfig
from vizformer.model.attention import Attention
from vizformer.model.forward_pass import AttentionCall
from vizformer.model.mixing import Scoring, mix

NORM_EPS = 1e-6  # of the norms of latents, whatever the other norms have


class LatentAttention(Attention):
    """Attention whose keys and values come from a latent c, and whose rotary part is shared by all heads.

    c_j = RMSNorm(x_j W_DKV),   r_j = R_j(x_j W_KR)          latent_dim and rope_dims numbers: all that a cache keeps
    k_hj = [r_j; c_j W_K^h],    v_hj = c_j W_V^h
    q_hi = [R_i(first rope_dims numbers); the others] of c'_i W_Q^h,   c'_i = RMSNorm(x_i W_DQ)   (or x_i itself)

    Turning would stand between W_Q and W_K; what is turned is therefore kept apart, so that these two can become one
    matrix: the scores are the same without any key being made ("absorbed"),

    q_hi . k_hj = q^r_hi . r_j + (q^c_hi W_K^h^T) . c_j,   z_hi = (sum_j a_ij c_j) W_V^h

    It computes so where one new token looks at a cache.  It has the places of attention: what asks a layer for its heads and
    W_O finds them here; W_K and W_V read the latent.
    """

    def __init__(self, config: ModelConfig) -> None:
        nn.Module.__init__(self)  # none of the parts of attention
        assert config.latent_dim is not None
        self.sinks, self.q_norm, self.k_norm, self.relative, self.W_gate = None, None, None, None, None
        self.normed_together = self.has_c2p = self.has_p2c = False
        self.own_scale, self.scoring = config.attention_scale, Scoring.of(config)
        self.n_heads = self.n_kv_heads = config.n_heads
        self.d_key, self.d_head, self.turned = config.d_head, config.d_value, config.turned_dims
        d, bias, rank = config.d_model, config.qkv_bias, config.latent_query_dim
        self.W_DQ = None if rank is None else nn.Linear(d, rank, bias=bias)
        self.query_norm = None if rank is None else nn.RMSNorm(rank, NORM_EPS)
        self.W_Q = nn.Linear(d if rank is None else rank, self.n_heads * self.d_key, bias=False)
        self.W_DKV = nn.Linear(d, config.latent_dim, bias=bias)
        self.W_KR = nn.Linear(d, self.turned, bias=bias)
        self.latent_norm = nn.RMSNorm(config.latent_dim, NORM_EPS)
        self.W_K = nn.Linear(config.latent_dim, self.n_heads * (self.d_key - self.turned), bias=False)
        self.W_V = nn.Linear(config.latent_dim, self.n_heads * self.d_head, bias=False)
        self.W_O = nn.Linear(self.n_heads * self.d_head, d, bias=config.out_bias)

    def forward(
        self, x: Float[Tensor, "b n_q d_model"], source: Float[Tensor, "b n_k d_model"], call: AttentionCall
    ) -> Float[Tensor, "b n_q d_model"]:
        """`source` is `x` itself."""
        watched = call.trace is not None or call.edit is not None
        if watched or x.shape[1] > 1 or call.cache is None or call.site not in call.cache.keys:
            return super().forward(x, source, call)
        z = self.absorbed(self.queries(x, call), *self.kept(source, call), call.bias(call.mask, x.dtype))
        out: Tensor = self.W_O(z.transpose(1, 2).flatten(2))
        return out

    def queries(self, x: Float[Tensor, "b n d_model"], call: AttentionCall) -> Float[Tensor, "b n_heads n d_key"]:
        if self.W_DQ is not None and self.query_norm is not None:
            x = self.query_norm(self.W_DQ(x))  # [b, n, latent_query_dim]
        q = self._apart(self.W_Q(x))
        return q if call.rotation is None else call.rotation.turn(q)

    def kept(
        self, source: Float[Tensor, "b n d_model"], call: AttentionCall
    ) -> tuple[Float[Tensor, "b 1 n_k turned"], Float[Tensor, "b 1 n_k latent"]]:
        """r and c of `source`, behind those of the tokens before it where there is a cache."""
        r, c = self.W_KR(source)[:, None], self.latent_norm(self.W_DKV(source))[:, None]
        return call.append(r if call.rotation is None else call.rotation.turn(r), c)

    def keys_and_values(
        self, source: Float[Tensor, "b n d_model"], call: AttentionCall
    ) -> tuple[Float[Tensor, "b n_heads n_k d_key"], Float[Tensor, "b n_heads n_k d_head"]]:
        r, c = self.kept(source, call)
        k, v = self._apart(self.W_K(c[:, 0])), self._apart(self.W_V(c[:, 0]))  # [b, n_heads, n_k, ...]
        return torch.cat([r.expand(-1, self.n_heads, -1, -1), k], dim=-1), v

    def absorbed(
        self,
        q: Float[Tensor, "b n_heads n_q d_key"],
        r: Float[Tensor, "b 1 n_k turned"],
        c: Float[Tensor, "b 1 n_k latent"],
        bias: Tensor | None,
    ) -> Float[Tensor, "b n_heads n_q d_head"]:
        """What the heads mix, without keys and values: all heads read one key [r; c] and one value c."""
        W_K, W_V = (w.weight.reshape(self.n_heads, -1, c.shape[-1]) for w in (self.W_K, self.W_V))  # [h, _, latent]
        q = torch.cat([q[..., : self.turned], q[..., self.turned :] @ W_K], dim=-1)  # [b, h, n_q, turned + latent]
        z: Tensor = mix(q, torch.cat([r, c], dim=-1), c, bias, self.scoring) @ W_V.mT
        return z

    def _apart(self, x: Float[Tensor, "b n width"]) -> Float[Tensor, "b n_heads n d"]:
        return x.reshape(*x.shape[:2], self.n_heads, -1).transpose(1, 2)
