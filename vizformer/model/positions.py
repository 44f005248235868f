"""Where a token stands: position vectors that are added to the token embeddings."""

import math

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
