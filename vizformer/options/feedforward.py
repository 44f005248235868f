"""The station of the feed-forward: one network in every layer."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from vizformer.messages import N_, Message, ranges
from vizformer.options.common import CommonOptions
from vizformer.options.kinds import Count, Numbers

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
"""As they are written in formulas, whichever way GELU is computed."""


@dataclass(frozen=True, kw_only=True)
class FeedForwardOptions(CommonOptions):
    """What every position goes through by itself.

    Attributes:
        activation: of the feed-forward layer; "relu_squared" is max(0, x)^2 (So et al. 2021, "Primer"), "gelu_tanh" GPT-2's
            approximation of GELU, "quick_gelu" that by a sigmoid (CLIP).
        feedforward: "plain" act(x W_in) W_out, or "gated" (act(x W_gate) * x W_in) W_out; gated with "silu" is SwiGLU
            (Shazeer 2020).
        shared_kv_d_ff: width of the hidden layer where a layer reads the keys and values of an earlier one (Gemma 4); None:
            d_ff.
        gate_sparsity: of a gated network, for each layer the share of gates that would be shut if they were spread like a
            bell: what is below such a cutoff counts as nothing, what is above it as its distance from it; 0: no cutoff
            (`vizformer.model.feedforward`; Gemma 3n); None: no layer has one.
    """

    activation: Activation = "relu"
    feedforward: FeedForwardKind = "plain"
    shared_kv_d_ff: Count | None = None
    gate_sparsity: Numbers | None = None

    def sparsity_of(self, layer: int) -> float:
        """The share of gates that the cutoff of a layer is meant to shut; 0 where there is none."""
        return 0.0 if self.gate_sparsity is None else self.gate_sparsity[layer]

    @property
    def network_matrices(self) -> int:
        """Matrices of one feed-forward network: W_in and W_out, with a gate W_gate too."""
        return 3 if self.feedforward == "gated" else 2

    def network_parameters(self, width: int) -> int:
        """Parameters of one feed-forward network: 2 d width + width + d, or 3 d width (+ 2 width + d) with a gate."""
        matrices = self.network_matrices
        return matrices * self.d_model * width + ((matrices - 1) * width + self.d_model if self.bias else 0)

    def rules(self) -> Iterator[Message]:
        if self.gate_sparsity is not None and (
            self.feedforward != "gated"
            or self.architecture == "encoder-decoder"
            or len(self.gate_sparsity) != self.depth
            or not all(0 <= one < 1 for one in self.gate_sparsity)
        ):
            yield N_(
                "gate_sparsity={value}: must be a number from 0 to below 1 for each of {n} layers, of one stack alone with "
                "feedforward='gated'",
                value=str(list(self.gate_sparsity)),
                n=self.depth,
            )

    def details(self) -> Iterator[Message]:
        if self.gate_sparsity is not None:
            yield N_(
                "gates below a cutoff are shut (layers: {layers})",
                layers=ranges(layer for layer, share in enumerate(self.gate_sparsity) if share > 0),
            )
        if self.shared_kv_d_ff is not None:
            yield N_(
                "the feed-forward is {width} wide where keys and values are those of an earlier layer",
                width=f"{self.shared_kv_d_ff:,}",
            )
