"""Parameters that our layers have and a family's files do not: made so that they change nothing, or from the options."""

import math
from collections.abc import Callable, Container, Iterable, Sequence
from functools import partial

import torch
from torch import Tensor

from vizformer.checkpoints.tensors.tensor_map import Part
from vizformer.messages import N_

Made = dict[str, Callable[[], Tensor]]  # by our names
WAVES = N_("positions are sinusoidal; VizFormer stores them as a table")


def zeros(names: Iterable[str], width: int) -> Made:
    return dict.fromkeys(names, partial(torch.zeros, width))


def stored(parts: Sequence[Part], made: Container[str]) -> list[Part]:
    """The `parts` that a file has to contain: all whose parameters are not made."""
    return [part for part in parts if not all(target in made for target in part.targets)]


def fairseq_waves(n: int, width: int, padding: int | None, first: int) -> Tensor:
    """Rows `first`..first + n - 1 of fairseq's sinusoidal positions, in which the padding's row is 0.

    Row p is [sin(p f_0), ..., sin(p f_(w-1)), cos(p f_0), ..., cos(p f_(w-1))],  f_i = 10000^(-i / (w - 1)),  w = width/2

    The paper divides by w instead of w - 1.  Computed in float32, as the models were trained.

    Source: `SinusoidalPositionalEmbedding` of fairseq, and of the models of `transformers` that came from there.
    """
    half = width // 2
    frequency = torch.exp(torch.arange(half).float() * -(math.log(10_000) / max(half - 1, 1)))  # [half]
    row = torch.arange(first, first + n)  # [n]
    angle = row.float()[:, None] * frequency[None, :]  # [n, half]
    waves = torch.cat([angle.sin(), angle.cos()], dim=1)
    waves = torch.cat([waves, torch.zeros(n, width - 2 * half)], dim=1)  # an odd width ends in a 0
    return torch.where((row == (-1 if padding is None else padding))[:, None], 0.0, waves)  # [n, width]
