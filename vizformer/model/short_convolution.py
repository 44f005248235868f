"""A short convolution between two gates, in the place of attention: a token reads itself and the few right before it.

Source: Liquid AI 2025, "LFM2 Technical Report", section 2.1, and the weights published with it.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from vizformer.config import ModelConfig
from vizformer.model.attention import Attention
from vizformer.model.forward_pass import AttentionCall
from vizformer.model.mixing import Scoring
from vizformer.model.state_rule import StateGates, read_back


class ShortConvolution(Attention):
    """Mixes tokens by a filter of `state_kernel` weights for each number of a row; it does not depend on the text.

    u_j = (x_j W_K) * (x_j W_V)                     number by number; the paper's names: q is C, k is B, v is x
    y_i = (x_i W_Q) * (sum_t f_t * u_(i-t) + b)     0 where no token is
    out = y W_O

    What stands where attention stands has heads, and the map M of a head has one number for all d_model numbers of a
    token.  Here that holds for each weight of the filter, a tap, by itself.  Head t is therefore tap t: it reads the one
    token t places back with weight 1, whose value is v_tj = f_t * u_j (of tap 0, + b).

    z_t = M_t v_t,   M_t[i, j] = 1 where i - j = t, else 0,   out = sum_t ((x W_Q) * z_t) W_O

    All heads share W_O.  A cache keeps the last state_kernel - 1 rows of u.
    """

    def __init__(self, config: ModelConfig) -> None:
        nn.Module.__init__(self)  # none of the parts of attention
        self.own_scale, self.q_norm, self.k_norm, self.sinks, self.relative = None, None, None, None, None
        self.normed_together, self.has_c2p, self.has_p2c, self.W_gate = False, False, False, None
        self.n_heads, self.d_key, self.d_head, self.scoring = config.state_kernel, 1, config.d_model, Scoring(1.0)
        self.n_kv_heads, bias = self.n_heads, config.state_bias
        self.W_Q, self.W_K, self.W_V = (nn.Linear(self.d_head, self.d_head, bias=bias) for _ in "QKV")
        self.filters = nn.Parameter(torch.empty(self.d_head, 1, self.n_heads))  # the oldest token first
        nn.init.uniform_(self.filters, -(self.n_heads**-0.5), self.n_heads**-0.5)
        self.filter_bias = nn.Parameter(torch.zeros(self.d_head)) if bias else None
        self.W_O: SharedOutput = SharedOutput(self.n_heads, self.d_head, bias)

    def forward(
        self, x: Float[Tensor, "b n d_model"], source: Float[Tensor, "b n d_model"], call: AttentionCall
    ) -> Float[Tensor, "b n d_model"]:
        """`source` is `x` itself."""
        before, (b, n, _) = self.n_heads - 1, x.shape
        u = call.with_tail((self.W_K(x) * self.W_V(x)).mT, before).mT[:, None]  # [b, 1, before + n, d_model]
        values = u * self.taps[:, None]  # [b, n_heads, before + n, d_model]
        if self.filter_bias is not None:
            values = torch.cat([values[:, :1] + self.filter_bias, values[:, 1:]], dim=1)
        ones = x.new_ones(b, self.n_heads, before + n, 1)
        q, k, v = call.state_edited(*(part[:, :, before:] for part in (ones, ones, values)))
        past = (part[:, :, :before] for part in (ones, ones, values))
        q, k, v = (torch.cat(parts, dim=2) for parts in zip(past, (q, k, v), strict=True))
        back = torch.arange(self.n_heads, device=x.device)
        z = read_back(q, k, v, back)[:, :, before:]  # [b, n_heads, n, d_model]
        q, k, v = (part[:, :, before:] for part in (q, k, v))
        opened = self.W_Q(x)[:, None].expand_as(z)
        kept = x.new_ones(self.n_heads, n)
        call.record(q, k, v, call.mask, self.scoring, StateGates(kept, 0 * kept, back=back), opened)
        out: Tensor = self.W_O((call.heads(z, v) * opened).transpose(1, 2).flatten(2))
        return out

    @property
    def taps(self) -> Float[Tensor, "n_heads d_model"]:
        """The filters, those of the token itself first."""
        return self.filters[:, 0].flip(1).T


class SharedOutput(nn.Linear):
    """W_O of heads that share one matrix: [z_0; ...; z_H] W_O = (z_0 + ... + z_H) W.

    Its `weight` [d_model, n_heads * d_head] is W as often as there are heads, where each finds rows of its own.
    """

    def __init__(self, n_heads: int, width: int, bias: bool) -> None:
        nn.Module.__init__(self)  # it has no matrix of that size
        self.n_heads, self.matrix = n_heads, nn.Linear(width, width, bias=bias)
        self.in_features, self.out_features = n_heads * width, width

    def forward(self, z: Float[Tensor, "*n width"]) -> Float[Tensor, "*n d_model"]:
        out: Tensor = self.matrix(z.reshape(*z.shape[:-1], self.n_heads, -1).sum(-2))
        return out

    @property
    def weight(self) -> Float[Tensor, "d_model width"]:  # type: ignore[override]
        return self.matrix.weight.repeat(1, self.n_heads)

    @property
    def bias(self) -> Float[Tensor, " d_model"] | None:  # type: ignore[override]
        return self.matrix.bias
