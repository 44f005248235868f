"""The station of norms: add & norm around every sublayer."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from vizformer.messages import N_, Message
from vizformer.options.common import CommonOptions
from vizformer.options.kinds import Fraction, Positive

NormOrder = Literal["post", "pre", "output", "sandwich", "none"]
Norm = Literal["layer_norm", "rms_norm"]
Residual = Literal["sequential", "parallel", "none"]

NORM_PLACES: dict[str, Message] = {
    "post": N_("after the sum"),
    "pre": N_("before the sublayer"),
    "output": N_("after the sublayer, before the sum"),
    "sandwich": N_("before and after the sublayer"),
    "none": N_("none in the layers"),
}


@dataclass(frozen=True, kw_only=True)
class NormOptions(CommonOptions):
    """How what a sublayer f has found is added to the residual stream x, and where both are normalised.

    Attributes:
        norm_order: "post" is norm(x + f(x)) (2017); "pre" is x + f(norm(x)) (GPT-2; Xiong et al. 2020); "output" is
            x + norm(f(x)) (OLMo 2); "sandwich" is x + norm'(f(norm(x))), with two norms for every sublayer (Ding et al.
            2021, "CogView"; Gemma 2, GLM-4); "none" is x + f(x), as toy models have it (Elhage et al. 2021, "A Mathematical
            Framework for Transformer Circuits").
        norm: "layer_norm" (Ba, Kiros & Hinton 2016) or "rms_norm" (Zhang & Sennrich 2019).
        norm_offset: the scale of every RMSNorm is 1 + weight (Gemma): weights near 0 then change little.
        residual: "sequential", or "parallel" x + attention(norm x) + feedforward(norm' x): both read the same input
            (Wang & Komatsuzaki 2021, "GPT-J"; GPT-NeoX); or "none": what a sublayer brings takes the place of x.
        residual_scale: what every sublayer has found is multiplied by it before it is added (Granite).
        final_norm: one more norm after the last layer of each stack.
        norm_eps: added to the variance (or mean square) inside the norm's root.
    """

    norm_order: NormOrder = "post"
    norm: Norm = "layer_norm"
    norm_offset: bool = False
    residual: Residual = "sequential"
    residual_scale: Positive = 1.0
    final_norm: bool = False
    norm_eps: Fraction = 1e-5

    def rules(self) -> Iterator[Message]:
        if self.norm_offset and self.norm != "rms_norm":
            yield N_(
                "norm_offset=True: this is an option of norm='rms_norm', with {norm!r} leave it out", norm=self.norm
            )
        if self.residual == "parallel" and (self.norm_order != "pre" or self.architecture == "encoder-decoder"):
            yield N_(
                "residual='parallel': attention and feed-forward read the same input, which needs norm_order='pre' and "
                "a model without cross-attention; otherwise take 'sequential'"
            )

    def details(self) -> Iterator[Message]:
        if self.norm_offset:
            yield N_("norms scale by 1 + weight")
        if self.residual == "parallel":
            yield N_("attention and feed-forward read the same input, side by side")
        if self.residual == "none":
            yield N_("no residual connections: what a sublayer has found takes the place of what it has read")
        if self.residual_scale != 1:
            yield N_("what a sublayer has found is multiplied by {scale}", scale=f"{self.residual_scale:g}")
