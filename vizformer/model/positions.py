"""Where a token stands: vectors added to the token embeddings, or angles by which queries and keys are turned."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor


def sinusoidal_encoding(n: int, d_model: int) -> Float[Tensor, "n d_model"]:
    """Sine and cosine waves of geometrically growing wavelength.

    PE[pos, 2i] = sin(pos / 10000^(2i/d_model)),  PE[pos, 2i+1] = cos(pos / 10000^(2i/d_model))

    Row 0 is 0, 1, 0, 1, ...; low dimensions oscillate fast (wavelength 2 pi), high ones slowly (up to 20000 pi).
    The angles are computed in float64: at position 5000 float32 angles are already wrong in the fourth digit.

    Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.5.
    """
    position = torch.arange(n, dtype=torch.float64)[:, None]  # [n, 1]
    pair = torch.arange(0, d_model, 2, dtype=torch.float64)  # [d_model/2]
    angle = position * torch.exp(-math.log(10_000.0) * pair / d_model)  # [n, d_model/2]
    encoding = torch.stack([angle.sin(), angle.cos()], dim=-1)  # [n, d_model/2, 2]
    return encoding.reshape(n, d_model).float()  # [n, d_model]


@dataclass(frozen=True)
class Rotation:
    """Rotary positions: cosine and sine of every angle pos * theta^(-2m/d_head), [n, d_head/2] each."""

    cos: Float[Tensor, "n pairs"]
    sin: Float[Tensor, "n pairs"]

    def __getitem__(self, positions: slice) -> "Rotation":
        return Rotation(self.cos[positions], self.sin[positions])

    def turn(self, x: Float[Tensor, "b h n d_head"]) -> Float[Tensor, "b h n d_head"]:
        """Turns each pair of numbers of a query or key by its position's angle.

        x'_m = x_m cos - x_(m+d/2) sin,   x'_(m+d/2) = x_m sin + x_(m+d/2) cos,   angle = pos * theta^(-2m/d_head)

        The dot product of a turned query and a turned key then depends only on how far apart they stand.  Pairs are
        (m, m + d_head/2), as in LLaMA's published weights; the paper's are (2m, 2m+1): the same up to an order of
        the dimensions.

        Source: Su et al. 2021, "RoFormer", equations 13 and 34.
        """
        cos, sin = self.cos.to(x.dtype), self.sin.to(x.dtype)  # [n, d_head/2]
        first, second = x.chunk(2, dim=-1)  # [b, h, n, d_head/2]
        return torch.cat([first * cos - second * sin, first * sin + second * cos], dim=-1)  # [b, h, n, d_head]


def rotation(n: int, d_head: int, theta: float = 10_000.0) -> Rotation:
    """The rotations of positions 0..n-1: pair m turns by pos * theta^(-2m/d_head), the first pair fastest.

    Source: Su et al. 2021, "RoFormer", section 3.2.2.
    """
    position = torch.arange(n, dtype=torch.float64)[:, None]  # [n, 1]
    pair = torch.arange(0, d_head, 2, dtype=torch.float64)  # [d_head/2]
    angle = position * torch.exp(-math.log(theta) * pair / d_head)  # [n, d_head/2]
    return Rotation(angle.cos().float(), angle.sin().float())
