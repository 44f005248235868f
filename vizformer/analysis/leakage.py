"""Leakage, measured: which outputs move when one token is changed."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray

from vizformer.analysis.heads import n_layers
from vizformer.errors import TraceError
from vizformer.messages import N_
from vizformer.model.trace import Trace

Stack = Literal["encoder", "decoder"]


@dataclass(frozen=True)
class Leak:
    """How far two forwards over as many tokens are apart.

    Attributes:
        stream: largest |difference| of the residual stream, before the first layer (row 0) and after each layer
            [n_layers + 1, n].
        outputs: the same of the stack's output (after the final norm, where there is one) [n].
    """

    stream: Float[ndarray, "points n"]
    outputs: Float[ndarray, " n"]

    @property
    def moved(self) -> tuple[int, ...]:
        """The positions whose output differs at all: the comparison is exact, not within a tolerance."""
        return tuple(np.flatnonzero(self.outputs != 0).tolist())


def leak(before: Trace, after: Trace, stack: Stack) -> Leak:
    """Compares the residual streams of a stack.

    Raises:
        TraceError: sequences of different lengths.
    """
    points = [f"{stack}.0.pre", *(f"{stack}.{layer}.post" for layer in range(n_layers(before, stack)))]
    if before.residual(points[0]).shape != after.residual(points[0]).shape:
        raise TraceError(N_("Only sequences of the same length can be compared position by position."))
    stream = np.stack([_apart(before.residual(name), after.residual(name)) for name in points])
    final = f"{stack}.final"
    return Leak(stream, _apart(before.residual(final), after.residual(final)))


def _apart(before: torch.Tensor, after: torch.Tensor) -> Float[ndarray, " n"]:
    found: ndarray = (before - after).abs().amax(dim=-1).double().cpu().numpy()
    return found
