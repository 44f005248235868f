"""The norms: of the residual stream, and of single queries and keys."""

from typing import Any, NamedTuple, TypeVar

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from vizformer.config import ModelConfig

Norm = nn.LayerNorm | nn.RMSNorm
T = TypeVar("T", bound=Any)


class Around(NamedTuple):
    """The norms around a sublayer f: x <- after(x + output(f(before(x)))); None where there is none.

    Pre-norm has the first, post-norm the last.  Without residual connections x is not added.
    """

    before: Norm | None = None
    output: Norm | None = None
    after: Norm | None = None
    adds: bool = True

    def onto(self, x: T, brought: T) -> T:
        """x + what is brought, or this in the place of x; of tensors, or of arrays."""
        return brought if not self.adds else x + brought  # type: ignore[no-any-return]

    def brought(self, y: Tensor) -> Tensor:
        """What is added to the residual stream of what the sublayer has made, y."""
        return y if self.output is None else self.output(y)


class OffsetRMSNorm(nn.RMSNorm):
    """RMSNorm(x) = x / sqrt(mean(x^2) + eps) * (1 + weight): a weight of 0 changes nothing.

    Half precision is left for it: close to 1 it would round away what was learned.

    Source: Gemma Team 2024, "Gemma: Open Models Based on Gemini Research and Technology", and the code and weights
    published with it.
    """

    def reset_parameters(self) -> None:
        nn.init.zeros_(self.weight)

    def forward(self, x: Float[Tensor, "*n d"]) -> Float[Tensor, "*n d"]:
        wide = x if x.dtype == torch.float64 else x.float()
        normed = F.rms_norm(wide, self.normalized_shape, 1.0 + self.weight.to(wide.dtype), self.eps)  # [..., d]
        return normed.to(x.dtype)


def norm(config: ModelConfig, width: int | None = None) -> Norm:
    """LayerNorm(x) = (x - mean) / sqrt(var + eps) * weight + bias, over d_model (Ba, Kiros & Hinton 2016).

    RMSNorm(x) = x / sqrt(mean(x^2) + eps) * weight (Zhang & Sennrich 2019).  `width` is how many numbers it works on,
    where that is not d_model.
    """
    kinds: dict[str, type[Norm]] = {
        "layer_norm": nn.LayerNorm,
        "rms_norm": OffsetRMSNorm if config.norm_offset else nn.RMSNorm,
    }
    return kinds[config.norm](config.d_model if width is None else width, eps=config.norm_eps)
