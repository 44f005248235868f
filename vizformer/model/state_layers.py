"""The layers around a state (`vizformer.model.state_rule`): matrices, a short convolution, gates, a norm.

Source: Yang et al. 2024, "Gated Delta Networks: Improving Mamba2 with Delta Rule", section 3.4 and figure 1; Qwen Team 2025,
"Qwen3-Next", and the code published with it.  Dao & Gu 2024, "Transformers are SSMs", section 7 (Mamba-2).
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from vizformer.config import ModelConfig
from vizformer.model.attention import Attention
from vizformer.model.forward_pass import AttentionCall
from vizformer.model.mixing import Scoring
from vizformer.model.state_rule import StateGates, apply_state_rule
from vizformer.options.attention import StateRule


class StateLayer(Attention):
    """Mixes tokens by a state, in the place of self-attention; each kind of layer says what q, k and the gates are.

    [q k v] = silu(conv([x W_Q, x W_K, x W_V]))      the convolution of each number over its last `state_kernel` tokens
    out = concat_h(opened_h * o_h) W_O               `opened`: a norm, and a gate made of x

    With fewer heads of queries and keys than of values, some value heads in a row share one.  It stands where attention
    stands: what asks a layer for its heads, matrices and W_O finds them here.
    """

    rule: StateRule
    norm: nn.RMSNorm
    W_b: nn.Linear  # of the delta rule only
    limits: tuple[float, float | None]  # of the step of a state space
    skip: Tensor | None  # D
    filter_bias: Tensor | None

    def __init__(self, config: ModelConfig) -> None:
        nn.Module.__init__(self)  # none of the parts of attention
        self.own_scale, self.q_norm, self.k_norm, self.sinks, self.relative = None, None, None, None, None
        self.skip, self.filter_bias = None, None
        self.normed_together = self.has_c2p = self.has_p2c = False
        self.n_key_heads, self.n_heads = config.state_heads
        self.n_kv_heads, (self.d_key, self.d_head) = self.n_heads, config.state_dims
        keys, values, bias = self.n_key_heads * self.d_key, self.n_heads * self.d_head, config.state_bias
        self.W_Q, self.W_K = (nn.Linear(config.d_model, keys, bias=bias) for _ in "QK")
        self.W_V, self.W_gate = (nn.Linear(config.d_model, values, bias=bias) for _ in "VG")
        self.W_a = nn.Linear(config.d_model, self.n_heads, bias=bias)
        self.filters = nn.Parameter(torch.empty(2 * keys + values, 1, config.state_kernel))
        nn.init.uniform_(self.filters, -(config.state_kernel**-0.5), config.state_kernel**-0.5)
        step = torch.logspace(-3, -1, self.n_heads)  # of softplus at the beginning, as in Mamba-2
        self.rate, self.bias = nn.Parameter(torch.linspace(1, 16, self.n_heads).log()), nn.Parameter(step.expm1().log())
        self.W_O = nn.Linear(values, config.d_model, bias=bias)

    def forward(
        self, x: Float[Tensor, "b n d_model"], source: Float[Tensor, "b n d_model"], call: AttentionCall
    ) -> Float[Tensor, "b n d_model"]:
        """`source` is `x` itself: a state reads a text from its beginning on, and no other one."""
        projected = torch.cat([self.W_Q(x), self.W_K(x), self.W_V(x)], dim=-1).mT  # [b, channels, n]
        convolved = self.convolved(call.with_tail(projected, self.filters.shape[-1] - 1)).mT  # [b, n, channels]
        q, k, v = self.heads(convolved)  # [b, n_heads, n, d_key or d_head]
        beta, decay = self.gates(x)  # [b, n_heads, n]
        q, k, v = call.state_edited(q, k, v)
        o, state = apply_state_rule(q * self.scoring.scale, k, v, beta, decay, call.state, self.skip)
        call.keep_state(state)
        opened = self.opened(o, x)
        skip = None if self.skip is None else self.skip.detach()
        gates = StateGates(beta[0].detach(), decay[0].detach(), skip=skip)
        call.record(q, k, v, call.mask, self.scoring, gates, opened)
        if (z := call.heads(o, v)) is not o:
            opened = self.opened(z, x)
        z = z * opened
        out: Tensor = self.W_O(z.transpose(1, 2).flatten(2))  # [b, n, n_heads * d_head] -> [b, n, d_model]
        return out

    def convolved(self, x: Float[Tensor, "b channels n_before"]) -> Float[Tensor, "b channels n"]:
        """silu of a weighted sum of the last numbers of each channel; `x` begins with those before the text."""
        return F.silu(F.conv1d(x, self.filters, self.filter_bias, groups=x.shape[1]))

    def heads(
        self, x: Float[Tensor, "b n channels"]
    ) -> tuple[
        Float[Tensor, "b n_heads n d_key"], Float[Tensor, "b n_heads n d_key"], Float[Tensor, "b n_heads n d_head"]
    ]:
        """Queries, keys and values; those of a shared key head once for each of its value heads."""
        keys = self.n_key_heads * self.d_key
        parts = (x[..., :keys], self.d_key), (x[..., keys : 2 * keys], self.d_key), (x[..., 2 * keys :], self.d_head)
        q, k, v = (part.reshape(*part.shape[:2], -1, d).transpose(1, 2) for part, d in parts)
        q, k = (self.brought(part).repeat_interleave(self.n_heads // self.n_key_heads, dim=1) for part in (q, k))
        return q, k, v

    def brought(self, x: Float[Tensor, "*n d_key"]) -> Float[Tensor, "*n d_key"]:
        """Queries or keys as the rule reads them."""
        return x

    def gates(self, x: Float[Tensor, "b n d_model"]) -> tuple[Float[Tensor, "b h n"], Float[Tensor, "b h n"]]:
        """How much of each value is written, and the logarithm of what is left of the state, at most 0."""
        raise NotImplementedError

    def opened(
        self, o: Float[Tensor, "b h n d_head"], x: Float[Tensor, "b n d_model"]
    ) -> Float[Tensor, "b h n d_head"]:
        """By what each number of o is multiplied before W_O: norm and gate in one."""
        raise NotImplementedError

    def _step(self, x: Float[Tensor, "b n d_model"]) -> Float[Tensor, "b h n"]:
        """softplus(x W_a + bias), in float32 at least."""
        step = F.softplus(self.W_a(x).float() + self.bias)
        return step.to(torch.float64 if x.dtype == torch.float64 else torch.float32).mT

    def _gate(self, x: Float[Tensor, "b n d_model"]) -> Float[Tensor, "b h n d_head"]:
        assert self.W_gate is not None
        return F.silu(self.W_gate(x).unflatten(-1, (self.n_heads, -1)).transpose(1, 2))


class GatedDeltaRule(StateLayer):
    """Mixes tokens by the gated delta rule (Qwen3-Next, Qwen3.5).

    q <- q / |q|,  k <- k / |k|,  o by the rule with q / sqrt(d_key)
    b = sigmoid(x W_b),   g = -e^rate softplus(x W_a + bias)
    o_h through RMSNorm(o_h) * silu(x W_gate)_h
    """

    rule = "delta"

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.W_b = nn.Linear(config.d_model, self.n_heads, bias=config.state_bias)
        self.norm = nn.RMSNorm(self.d_head, config.norm_eps)
        self.scoring = Scoring(self.d_key**-0.5)

    def brought(self, x: Float[Tensor, "*n d_key"]) -> Float[Tensor, "*n d_key"]:
        """x / sqrt(|x|^2 + 1e-6)."""
        return x * torch.rsqrt(x.square().sum(-1, keepdim=True) + 1e-6)

    def gates(self, x: Float[Tensor, "b n d_model"]) -> tuple[Float[Tensor, "b h n"], Float[Tensor, "b h n"]]:
        return torch.sigmoid(self.W_b(x)).mT, -self.rate[:, None].float().exp() * self._step(x)

    def opened(
        self, o: Float[Tensor, "b h n d_head"], x: Float[Tensor, "b n d_model"]
    ) -> Float[Tensor, "b h n d_head"]:
        eps = self.norm.eps or 0.0
        return self.norm.weight * self._gate(x) * torch.rsqrt(o.square().mean(-1, keepdim=True) + eps)


class StateSpace(StateLayer):
    """Mixes tokens by a state space with a state of d_key numbers for each number of a value (Mamba-2, "SSD").

    The paper's names: q is C, k is B, v is x, b is dt, heads of keys are groups, and g = dt A.

    b = clamp(softplus(x W_a + bias), least, most),   g = -e^rate b,   o by the rule with q as it is, D = skip
    o through RMSNorm(o * silu(x W_gate)), over the heads of a group together
    """

    rule = "space"

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.filter_bias = nn.Parameter(torch.zeros(len(self.filters)))
        self.skip = nn.Parameter(torch.ones(self.n_heads))
        self.norm = nn.RMSNorm(self.n_heads * self.d_head, config.norm_eps)
        self.limits = config.state_step_least or 0.0, config.state_step_most
        self.scoring = Scoring(1.0)

    def gates(self, x: Float[Tensor, "b n d_model"]) -> tuple[Float[Tensor, "b h n"], Float[Tensor, "b h n"]]:
        step = self._step(x).clamp(*self.limits)
        return step, -self.rate[:, None].float().exp() * step

    def opened(
        self, o: Float[Tensor, "b h n d_head"], x: Float[Tensor, "b n d_model"]
    ) -> Float[Tensor, "b h n d_head"]:
        gate = self._gate(x)
        b, h, n, d = o.shape
        groups = (o * gate).reshape(b, self.n_key_heads, h // self.n_key_heads, n, d)
        root = torch.rsqrt(groups.square().mean((2, 4), keepdim=True) + (self.norm.eps or 0.0)).expand_as(groups)
        return self.norm.weight.reshape(h, 1, d) * gate * root.flatten(1, 2)
