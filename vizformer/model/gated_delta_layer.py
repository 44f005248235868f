"""The layer around the gated delta rule (`vizformer.model.delta_rule`): matrices, a short convolution, gates, a norm.

Source: Yang et al. 2024, "Gated Delta Networks: Improving Mamba2 with Delta Rule", section 3.4 and figure 1; Qwen Team 2025,
"Qwen3-Next", and the code published with it.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from vizformer.config import ModelConfig
from vizformer.model.attention import Attention
from vizformer.model.delta_rule import DeltaGates, apply_delta_rule
from vizformer.model.forward_pass import AttentionCall
from vizformer.model.mixing import Scoring


class GatedDeltaRule(Attention):
    """Mixes tokens by the gated delta rule, in the place of self-attention (Qwen3-Next, Qwen3.5).

    [q k v] = silu(conv([x W_Q, x W_K, x W_V]))      the convolution of each number over its last `delta_kernel` tokens
    q <- q / |q|,  k <- k / |k|,  o by the rule with q / sqrt(d_key)
    b = sigmoid(x W_b),   g = -e^rate softplus(x W_a + bias)
    out = concat_h(RMSNorm(o_h) * silu(x W_gate)_h) W_O

    With fewer heads of queries and keys than of values, some value heads in a row share one.  It stands where attention
    stands: what asks a layer for its heads, matrices and W_O finds them here.
    """

    def __init__(self, config: ModelConfig) -> None:
        nn.Module.__init__(self)  # none of the parts of attention
        self.own_scale, self.q_norm, self.k_norm, self.sinks, self.relative = None, None, None, None, None
        self.normed_together = self.has_c2p = self.has_p2c = False
        self.n_key_heads, self.n_heads = config.delta_heads
        self.n_kv_heads, (self.d_key, self.d_head) = self.n_heads, config.delta_dims
        keys, values = self.n_key_heads * self.d_key, self.n_heads * self.d_head
        self.W_Q, self.W_K = (nn.Linear(config.d_model, keys, bias=False) for _ in "QK")
        self.W_V, self.W_gate = (nn.Linear(config.d_model, values, bias=False) for _ in "VG")
        self.W_b, self.W_a = (nn.Linear(config.d_model, self.n_heads, bias=False) for _ in "ba")
        self.filters = nn.Parameter(torch.empty(2 * keys + values, 1, config.delta_kernel))
        nn.init.uniform_(self.filters, -(config.delta_kernel**-0.5), config.delta_kernel**-0.5)
        step = torch.logspace(-3, -1, self.n_heads)  # of softplus at the beginning, as in Mamba-2
        self.rate, self.bias = nn.Parameter(torch.linspace(1, 16, self.n_heads).log()), nn.Parameter(step.expm1().log())
        self.norm = nn.RMSNorm(self.d_head, config.norm_eps)
        self.W_O = nn.Linear(values, config.d_model, bias=False)
        self.scoring = Scoring(self.d_key**-0.5)

    def forward(
        self, x: Float[Tensor, "b n d_model"], source: Float[Tensor, "b n d_model"], call: AttentionCall
    ) -> Float[Tensor, "b n d_model"]:
        """`source` is `x` itself: the rule reads a text from its beginning on, and no other one."""
        projected = torch.cat([self.W_Q(x), self.W_K(x), self.W_V(x)], dim=-1).mT  # [b, channels, n]
        convolved = self.convolved(call.with_tail(projected, self.filters.shape[-1] - 1)).mT  # [b, n, channels]
        q, k, v = self.heads(convolved)  # [b, n_heads, n, d_key or d_head]
        beta, decay = self.gates(x)  # [b, n_heads, n]
        q, k, v = call.delta_edited(q, k, v)
        o, state = apply_delta_rule(q * self.scoring.scale, k, v, beta, decay, call.state)
        call.keep_state(state)
        opened = self.opened(o, x)
        call.record(q, k, v, call.mask, self.scoring, DeltaGates(beta[0].detach(), decay[0].detach()), opened)
        if (z := call.heads(o, v)) is not o:
            opened = self.opened(z, x)
        z = z * opened
        out: Tensor = self.W_O(z.transpose(1, 2).flatten(2))  # [b, n, n_heads * d_head] -> [b, n, d_model]
        return out

    def convolved(self, x: Float[Tensor, "b channels n_before"]) -> Float[Tensor, "b channels n"]:
        """silu of a weighted sum of the last numbers of each channel; `x` begins with those before the text."""
        return F.silu(F.conv1d(x, self.filters, groups=x.shape[1]))

    def heads(
        self, x: Float[Tensor, "b n channels"]
    ) -> tuple[
        Float[Tensor, "b n_heads n d_key"], Float[Tensor, "b n_heads n d_key"], Float[Tensor, "b n_heads n d_head"]
    ]:
        """Queries and keys of length 1, and values; those of a shared key head once for each of its value heads."""
        keys = self.n_key_heads * self.d_key
        parts = (x[..., :keys], self.d_key), (x[..., keys : 2 * keys], self.d_key), (x[..., 2 * keys :], self.d_head)
        q, k, v = (part.reshape(*part.shape[:2], -1, d).transpose(1, 2) for part, d in parts)
        q, k = (unit(part).repeat_interleave(self.n_heads // self.n_key_heads, dim=1) for part in (q, k))
        return q, k, v

    def gates(self, x: Float[Tensor, "b n d_model"]) -> tuple[Float[Tensor, "b h n"], Float[Tensor, "b h n"]]:
        """How much of each value is written, 0 to 1, and the logarithm of what is left of the state, at most 0."""
        beta = torch.sigmoid(self.W_b(x))
        decay = -self.rate.float().exp() * F.softplus(self.W_a(x).float() + self.bias)
        return beta.mT, decay.to(torch.float64 if x.dtype == torch.float64 else torch.float32).mT

    def opened(
        self, o: Float[Tensor, "b h n d_head"], x: Float[Tensor, "b n d_model"]
    ) -> Float[Tensor, "b h n d_head"]:
        """By what each number of o is multiplied: RMSNorm(o) * silu(gate) = o * opened."""
        assert self.W_gate is not None
        gate = F.silu(self.W_gate(x).unflatten(-1, (self.n_heads, -1)).transpose(1, 2))
        eps = self.norm.eps or 0.0
        return self.norm.weight * gate * torch.rsqrt(o.square().mean(-1, keepdim=True) + eps)


def unit(x: Float[Tensor, "*n d"]) -> Float[Tensor, "*n d"]:
    """x / sqrt(|x|^2 + 1e-6)."""
    return x * torch.rsqrt(x.square().sum(-1, keepdim=True) + 1e-6)
