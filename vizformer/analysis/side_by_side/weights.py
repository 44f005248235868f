"""Which weights differ between two models of the same shape: a model before and after fine-tuning, two steps of a training.

For the tensors A of the first model and B of the second one, with D = B - A,

    relative     |D|_F / |A|_F, where |X|_F = sqrt(sum of the squares of all numbers)
    singular     the largest singular values of D: few large ones and small others mean that the change has a low rank

Source of looking at the rank of a change: Aghajanyan et al. 2020, "Intrinsic Dimensionality Explains the Effectiveness of
Language Model Fine-Tuning"; Hu et al. 2021, "LoRA: Low-Rank Adaptation of Large Language Models", 7.3.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from vizformer.checkpoints import Checkpoint
from vizformer.errors import TraceError
from vizformer.model.streamed_layers import refused

CHEAP = 4 * 10**9  # multiplications for the singular values of one matrix: well below a second
SINGULAR = 3  # of the largest that are told


@dataclass(frozen=True)
class MovedTensor:
    """How far one tensor of the second model is from that of the first.

    Attributes:
        name: as `Transformer` calls it.
        shape: its shape.
        distance: |B - A|_F.
        length: |A|_F.
        singular: the largest singular values of B - A, the largest first; None for what is no matrix, or a large one.
    """

    name: str
    shape: tuple[int, ...]
    distance: float
    length: float
    singular: tuple[float, ...] | None

    @property
    def relative(self) -> float:
        """|B - A|_F / |A|_F; infinite where A is 0 and B is not, 0 where both are."""
        if self.length > 0:
            return self.distance / self.length
        return math.inf if self.distance > 0 else 0.0


@dataclass(frozen=True)
class MovedWeights:
    """All tensors that both models have.

    Attributes:
        tensors: those that moved most first, by `relative`; then those that were 0 in the first model, whose movement
            has nothing to be measured by.
        only_in_one: the names of tensors that the other model lacks or has in another shape; not compared.
    """

    tensors: tuple[MovedTensor, ...]
    only_in_one: tuple[str, ...]

    @property
    def relative(self) -> float:
        """|B - A|_F / |A|_F of all compared numbers together."""
        length = math.sqrt(sum(one.length**2 for one in self.tensors))
        distance = math.sqrt(sum(one.distance**2 for one in self.tensors))
        if length > 0:
            return distance / length
        return math.inf if distance > 0 else 0.0


@torch.inference_mode()
def moved_weights(
    first: Checkpoint, second: Checkpoint, *, heard: Callable[[int, int], None] | None = None
) -> MovedWeights:
    """Compares the parameters of two models by their names; a table that serves twice counts once.

    Args:
        heard: told after every tensor how many are done, of how many; what it raises ends it.

    Raises:
        TraceError: no tensor of the one has the name and shape of one of the other; a model whose layers are streamed.
    """
    if first.model.is_streamed or second.model.is_streamed:
        raise refused()
    ours, theirs = (dict(checkpoint.model.named_parameters()) for checkpoint in (first, second))
    common = [name for name in ours if name in theirs and ours[name].shape == theirs[name].shape]
    if not common:
        raise TraceError("The two models have no tensor of the same name and shape: nothing can have moved.")
    found = []
    for name in common:
        a, b = (parameters[name].detach().cpu().double() for parameters in (ours, theirs))
        found.append(_moved(name, a, b - a))
        if heard is not None:
            heard(len(found), len(common))
    others = sorted((ours.keys() | theirs.keys()) - set(common))
    found.sort(key=lambda one: (math.isinf(one.relative), -one.relative if one.length else -one.distance, one.name))
    return MovedWeights(tuple(found), tuple(others))


def _moved(name: str, a: Tensor, difference: Tensor) -> MovedTensor:
    distance, length = float(difference.norm()), float(a.norm())
    return MovedTensor(name, tuple(a.shape), distance, length, _largest(difference))


def _largest(matrix: Tensor) -> tuple[float, ...] | None:
    """Roots of the largest eigenvalues of the smaller of D D^T and D^T D; None where that is dear."""
    if matrix.ndim != 2 or min(matrix.shape) ** 2 * max(matrix.shape) > CHEAP:
        return None
    small = matrix if matrix.shape[0] <= matrix.shape[1] else matrix.T
    values = torch.linalg.eigvalsh(small @ small.T).clamp_min(0.0).sqrt()  # from the smallest to the largest
    return tuple(values.flip(0)[:SINGULAR].tolist())
