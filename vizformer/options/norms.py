"""The station of norms: add & norm around every sublayer."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from vizformer.messages import N_, Message
from vizformer.options.common import CommonOptions
from vizformer.options.kinds import Fraction

NormOrder = Literal["post", "pre", "none"]
Norm = Literal["layer_norm", "rms_norm"]
Residual = Literal["sequential", "none"]

NORM_PLACES: dict[str, Message] = {
    "post": N_("after the sum"),
    "pre": N_("before the sublayer"),
    "none": N_("none in the layers"),
}


@dataclass(frozen=True, kw_only=True)
class NormOptions(CommonOptions):
    """How what a sublayer f has found is added to the residual stream x, and where both are normalised.

    Attributes:
        norm_order: "post" is norm(x + f(x)) (2017); "pre" is x + f(norm(x)) (GPT-2; Xiong et al. 2020);
            "none" is x + f(x), as toy models have it (Elhage et al. 2021, "A Mathematical Framework for Transformer
            Circuits").
        norm: "layer_norm" (Ba, Kiros & Hinton 2016) or "rms_norm" (Zhang & Sennrich 2019).
        residual: "sequential", or "none": what a sublayer brings takes the place of x.
        final_norm: one more norm after the last layer of each stack.
        norm_eps: added to the variance (or mean square) inside the norm's root.
    """

    norm_order: NormOrder = "post"
    norm: Norm = "layer_norm"
    residual: Residual = "sequential"
    final_norm: bool = False
    norm_eps: Fraction = 1e-5

    def details(self) -> Iterator[Message]:
        if self.residual == "none":
            yield N_("no residual connections: what a sublayer has found takes the place of what it has read")
