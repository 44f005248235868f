"""The feed-forward layer: the same two-layer network at every position."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from vizformer.config import ModelConfig
from vizformer.model.forward_pass import ForwardPass


class QuickGELU(nn.Module):
    """x sigmoid(1.702 x), the rougher of the two approximations of GELU.

    Source: Hendrycks & Gimpel 2016, "Gaussian Error Linear Units (GELUs)", section 2.
    """

    def forward(self, x: Float[Tensor, "*n"]) -> Float[Tensor, "*n"]:
        return x * torch.sigmoid(1.702 * x)


class SquaredReLU(nn.Module):
    """max(0, x)^2.

    Source: So et al. 2021, "Primer: Searching for Efficient Transformers for Language Modeling", section 3.
    """

    def forward(self, x: Float[Tensor, "*n"]) -> Float[Tensor, "*n"]:
        return torch.relu(x).square()


def activation(config: ModelConfig) -> nn.Module:
    """ReLU (Vaswani et al. 2017, 3.3), SiLU (LLaMA), GELU (Hendrycks & Gimpel 2016): exact (BERT), by tanh (GPT-2) or by
    a sigmoid (CLIP)."""
    return {
        "relu": nn.ReLU(),
        "relu_squared": SquaredReLU(),
        "gelu": nn.GELU(),
        "gelu_tanh": nn.GELU(approximate="tanh"),
        "quick_gelu": QuickGELU(),
        "silu": nn.SiLU(),
    }[config.activation]


class FeedForward(nn.Module):
    """FFN(x) = act(x W_in + b_in) W_out + b_out;  gated: (act(x W_gate + b_gate) * (x W_in + b_in)) W_out + b_out.

    Source: Vaswani et al. 2017, section 3.3; Shazeer 2020, "GLU Variants Improve Transformer".
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        gated, d_ff = config.feedforward == "gated", config.d_ff
        self.W_gate = nn.Linear(config.d_model, d_ff, bias=config.bias) if gated else None
        self.W_in = nn.Linear(config.d_model, d_ff, bias=config.bias)
        self.W_out = nn.Linear(d_ff, config.d_model, bias=config.bias)
        self.activation = activation(config)

    def forward(
        self, x: Float[Tensor, "*n d_model"], run: ForwardPass | None = None, name: str = ""
    ) -> Float[Tensor, "*n d_model"]:
        """`name` is the layer's place in the model, by which `run` knows the neurons."""
        if self.W_gate is None:
            hidden = self.activation(self.W_in(x))  # [..., n, d_ff]
        else:
            hidden = self.activation(self.W_gate(x)) * self.W_in(x)  # [..., n, d_ff]
        hidden = hidden if run is None else run.output(f"{name}.feedforward.hidden", hidden)
        out: Tensor = self.W_out(hidden)  # [..., n, d_model]
        return out
