"""Several residual streams beside one another (AltUp), and a second way around attention (LAuReL).

The streams of a position are the rows of X [n_streams, d_model]. The first one, x_0, goes through the sublayers of a layer.

Source: Baykal et al. 2023, "Alternating Updates for Efficient Transformers"; Menghani et al. 2024, "LAuReL: Learned
Augmented Residual Layer"; and Google DeepMind 2025, "Gemma 3n", as `transformers` has it.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from vizformer.config import ModelConfig
from vizformer.model.norms import norm

LEAST = 1e-5  # of the mean square that a row is divided by


class Streams(nn.Module):
    """What a layer does with the streams before and after its sublayers, which make y of p_0, the first row of P.

    predict:  P = X + C(x_0) X          C(x) [s, s] = W_predict t(x)
    correct:  X' = P + (1 + g(y)) (y - p_0)   g(x) [s] = W_correct t(x);   t(x) [s] = tanh(W_t norm(x) / d_model)
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        count = config.n_streams or 1
        self.norm = norm(config)
        self.W_t = nn.Linear(config.d_model, count, bias=False)
        self.W_predict = nn.Linear(count, count * count, bias=False)
        self.W_correct = nn.Linear(count, count, bias=False)
        self.scale_weight = nn.Parameter(torch.ones(config.d_model)) if config.stream_scale else None

    def told(self, x: Float[Tensor, "*n d_model"]) -> Float[Tensor, "*n s"]:
        """t(x)."""
        told: Tensor = torch.tanh(self.W_t(self.norm(x) / x.shape[-1]))
        return told

    def predict(self, streams: Float[Tensor, "*n s d_model"]) -> Float[Tensor, "*n s d_model"]:
        mixed = self.W_predict(self.told(streams[..., 0, :])).unflatten(-1, (streams.shape[-2], -1))  # [..., s, s]
        found: Tensor = mixed @ streams + streams
        return found

    def correct(
        self, predicted: Float[Tensor, "*n s d_model"], y: Float[Tensor, "*n d_model"]
    ) -> Float[Tensor, "*n s d_model"]:
        gain: Tensor = self.W_correct(self.told(y)) + 1.0  # [..., s]
        return predicted + gain[..., None] * (y - predicted[..., 0, :])[..., None, :]

    def scaled(self, x: Float[Tensor, "*n d_model"]) -> Float[Tensor, "*n d_model"]:
        """The first stream as the gate of what the layer reads of its token again reads it."""
        return x if self.scale_weight is None else x * self.scale_weight


class StreamEnds(nn.Module):
    """Where the streams of a stack begin, and where they become one row again.

    split:  x_i = |x| W_i x / |W_i x|       merge:  x = mean over i of |x_0| U_i x_i / |U_i x_i|,  U_0 x_0 = x_0

    |x| is the root of the mean square.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        others, d = range(1, config.n_streams or 1), config.d_model
        self.W_split = nn.ModuleList(nn.Linear(d, d, bias=False) for __ in others)
        self.W_merge = nn.ModuleList(nn.Linear(d, d, bias=False) for __ in others)

    def split(self, x: Float[Tensor, "*n d_model"]) -> Float[Tensor, "*n s d_model"]:
        return torch.stack([x, *(_as_long(W(x), x) for W in self.W_split)], dim=-2)

    def merge(self, streams: Float[Tensor, "*n s d_model"]) -> Float[Tensor, "*n d_model"]:
        first, *others = streams.unbind(-2)
        rows = [first, *(_as_long(W(x), first) for W, x in zip(self.W_merge, others, strict=True))]
        return torch.stack(rows).mean(0)


def _as_long(y: Float[Tensor, "*n d"], x: Float[Tensor, "*n d"]) -> Float[Tensor, "*n d"]:
    """y with the length of x."""
    length = y.square().mean(-1, keepdim=True).clamp(min=LEAST).sqrt()
    return y * x.square().mean(-1, keepdim=True).sqrt() / length


class Laurel(nn.Module):
    """L(x) = x + norm(x W_left W_right) of what attention reads; the stream is then (x + attention + L) / sqrt(2)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        rank = config.laurel_rank or 1
        self.W_left = nn.Linear(config.d_model, rank, bias=False)
        self.W_right = nn.Linear(rank, config.d_model, bias=False)
        self.norm = norm(config)

    def forward(self, x: Float[Tensor, "*n d_model"]) -> Float[Tensor, "*n d_model"]:
        found: Tensor = x + self.norm(self.W_right(self.W_left(x)))
        return found
