"""The station of the feed-forward: one network in every layer."""

from dataclasses import dataclass
from typing import Literal

from vizformer.options.common import CommonOptions

Activation = Literal["relu", "gelu", "gelu_tanh", "quick_gelu", "silu", "relu_squared"]
FeedForwardKind = Literal["plain", "gated"]

ACTIVATION_NAMES = {
    "relu": "ReLU",
    "relu_squared": "ReLU²",
    "gelu": "GELU",
    "gelu_tanh": "GELU",
    "quick_gelu": "QuickGELU",
    "silu": "SiLU",
}
"""The names of the activations in formulas; both ways of computing GELU have the same name."""


@dataclass(frozen=True, kw_only=True)
class FeedForwardOptions(CommonOptions):
    """What every position goes through by itself.

    Attributes:
        activation: of the feed-forward layer; "relu_squared" is max(0, x)^2 (So et al. 2021, "Primer"), "gelu_tanh" GPT-2's
            approximation of GELU, "quick_gelu" that by a sigmoid (CLIP).
        feedforward: "plain" act(x W_in) W_out, or "gated" (act(x W_gate) * x W_in) W_out; gated with "silu" is SwiGLU
            (Shazeer 2020).
    """

    activation: Activation = "relu"
    feedforward: FeedForwardKind = "plain"

    @property
    def network_matrices(self) -> int:
        """The number of matrices of one feed-forward network: 2 (W_in, W_out), or 3 with a gate (W_gate)."""
        return 3 if self.feedforward == "gated" else 2

    def network_parameters(self, width: int) -> int:
        """The number of parameters of one feed-forward network: 2 d width + width + d, or with a gate 3 d width (+ 2
        width + d).
        """
        matrices = self.network_matrices
        return matrices * self.d_model * width + ((matrices - 1) * width + self.d_model if self.bias else 0)
