"""The feed-forward layer: the same two-layer network at every position."""

from jaxtyping import Float
from torch import Tensor, nn

from vizformer.config import ModelConfig


def activation(config: ModelConfig) -> nn.Module:
    """ReLU (Vaswani et al. 2017, 3.3) or the tanh approximation of GELU (Hendrycks & Gimpel 2016; GPT-2)."""
    return {"relu": nn.ReLU(), "gelu_tanh": nn.GELU(approximate="tanh")}[config.activation]


class FeedForward(nn.Module):
    """FFN(x) = act(x W_in + b_in) W_out + b_out.

    Source: Vaswani et al. 2017, section 3.3.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.W_in = nn.Linear(config.d_model, config.d_ff, bias=config.bias)
        self.W_out = nn.Linear(config.d_ff, config.d_model, bias=config.bias)
        self.activation = activation(config)

    def forward(self, x: Float[Tensor, "b n d_model"]) -> Float[Tensor, "b n d_model"]:
        out: Tensor = self.W_out(self.activation(self.W_in(x)))  # [b, n, d_ff] -> [b, n, d_model]
        return out
