"""The norms of the residual stream, of queries and of keys, and what they stand around."""

from typing import Any, NamedTuple, TypeVar

from jaxtyping import Float
from torch import Tensor, nn

from vizformer.config import ModelConfig

Norm = nn.LayerNorm | nn.RMSNorm
T = TypeVar("T", bound=Any)


class Around(NamedTuple):
    """The norms around a sublayer f: x <- after(x + f(before(x))); None where there is none.

    Pre-norm has the first, post-norm the last.  Without residual connections x is not added.
    """

    before: Norm | None = None
    after: Norm | None = None
    adds: bool = True

    def enter(self, x: Float[Tensor, "*n d_model"]) -> Float[Tensor, "*n d_model"]:
        """What the sublayer reads: before(x)."""
        return x if self.before is None else self.before(x)

    def leave(
        self, x: Float[Tensor, "*n d_model"], brought: Float[Tensor, "*n d_model"]
    ) -> Float[Tensor, "*n d_model"]:
        """after(x + brought), brought being the output of the sublayer."""
        y: Tensor = self.onto(x, brought)
        return y if self.after is None else self.after(y)

    def onto(self, x: T, brought: T) -> T:
        """x + brought, or `brought` alone without residual connections; for tensors and for arrays."""
        return brought if not self.adds else x + brought  # type: ignore[no-any-return]


def norm(config: ModelConfig, width: int | None = None) -> Norm:
    """LayerNorm(x) = (x - mean) / sqrt(var + eps) * weight + bias, over d_model (Ba, Kiros & Hinton 2016).

    RMSNorm(x) = x / sqrt(mean(x^2) + eps) * weight (Zhang & Sennrich 2019).  `width` is how many numbers it works on,
    where that is not d_model.
    """
    kinds: dict[str, type[Norm]] = {"layer_norm": nn.LayerNorm, "rms_norm": nn.RMSNorm}
    return kinds[config.norm](config.d_model if width is None else width, eps=config.norm_eps)
