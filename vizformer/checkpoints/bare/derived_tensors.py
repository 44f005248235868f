"""Tensors that are made of tensors of the file: matrices turned over, tables cut, heads joined."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from vizformer.checkpoints.files.weights import FLOATS, Stored, Weights
from vizformer.checkpoints.tensors.report import TensorFate
from vizformer.checkpoints.tensors.tensor_map import Shape
from vizformer.messages import N_, Message

_LARGEST_MASK = 2**14  # positions
_WHOLE = ("int64", "int32", "int16", "int8", "uint8")
_NO_MASK = re.compile(r"(?:.*\.)?(?:masked_bias|IGNORE|mask_value|neg_inf|ignore)", re.IGNORECASE)


@dataclass(frozen=True)
class Made:
    """A tensor that is computed from others: its sources, its shape, and the function that builds it."""

    sources: tuple[str, ...]
    shape: Shape
    build: Callable[[Sequence[Tensor]], Tensor]


def with_made(weights: Weights, made: Mapping[str, Made]) -> Weights:
    """The tensors with those that are made in the place of what they are made of."""
    tensors = dict(weights.tensors)
    for name, recipe in made.items():
        stored = [weights.tensors[source] for source in recipe.sources]
        tensors[name] = Stored(stored[0].file, recipe.shape, _dtype(stored), _reader(recipe, stored))
    for recipe in made.values():
        for source in recipe.sources:
            if source not in made:
                tensors.pop(source, None)
    return replace(weights, tensors=tensors)


def _dtype(stored: Sequence[Stored]) -> str:
    """Theirs; of mixed ones the widest, and one that holds no floats before all others."""
    kinds = [one.dtype for one in stored]
    strange = [kind for kind in kinds if kind not in FLOATS]
    return (strange or sorted(kinds, key=lambda kind: -FLOATS[kind].itemsize))[0]


def _reader(recipe: Made, stored: Sequence[Stored]) -> Callable[[], Tensor]:
    def read() -> Tensor:
        tensors = [one.read() for one in stored]
        kind = tensors[0].dtype
        for tensor in tensors[1:]:
            kind = torch.promote_types(kind, tensor.dtype)
        return recipe.build([tensor.to(kind) for tensor in tensors])

    return read


def by_source(fates: Sequence[TensorFate], made: Mapping[str, Made], weights: Weights) -> tuple[TensorFate, ...]:
    """The fates of what lies in the file, where those of made tensors were found."""
    found: dict[str, TensorFate] = {}
    for fate in fates:
        sources = made[fate.name].sources if fate.name in made else ()
        for source in sources:
            stored = weights.tensors[source]
            more = found[source].becomes if source in found else ()
            becomes = tuple(dict.fromkeys((*more, *fate.becomes)))
            found[source] = replace(
                fate, name=source, file=stored.file, shape=stored.shape, dtype=stored.dtype, becomes=becomes
            )
        if not sources:
            found[fate.name] = fate
    return tuple(found.values())


def turned(source: str, shape: Shape) -> Made:
    """A matrix that its author multiplies from the right: [in, out] where we have [out, in]."""
    return Made((source,), tuple(reversed(shape)), lambda tensors: tensors[0].T)


def reshaped(source: str, shape: Shape) -> Made:
    return Made((source,), shape, lambda tensors: tensors[0].reshape(shape))


# Tensors of a file that are no parameters: counters, the numbers of positions, masks.
def plays_no_part(stored: Stored) -> Message | None:
    """Says why no forward computes with a tensor, by its numbers; None where it may be a parameter.

    One whole number is a counter (num_batches_tracked, n_averaged), 0, 1, ..., n - 1 are the numbers of positions.
    """
    n = math.prod(stored.shape)
    if stored.dtype not in _WHOLE or not 0 < n <= 2**20:
        return None
    if n == 1:
        return N_("a counter (one whole number), which the forward does not use")
    if bool(torch.equal(stored.read().reshape(-1).long(), torch.arange(n))):
        return N_("the numbers of the positions")
    return None


def masks(weights: Weights) -> dict[str, Message]:
    """Causal masks, and the numbers that stand for what they block, by name."""
    found: dict[str, Message] = {}
    for name, stored in weights.tensors.items():
        if _NO_MASK.fullmatch(name) and math.prod(stored.shape) == 1:
            found[name] = N_("the score of blocked positions")
        elif _is_causal(name, stored):
            found[name] = N_("the causal mask: it follows from the positions")
    return found


def _is_causal(name: str, stored: Stored) -> bool:
    """Whether a buffer says which places are seen: the lower triangle, or that the upper one is not."""
    *above, rows, columns = stored.shape if len(stored.shape) > 1 else (0, 1)
    if rows != columns or not 1 < rows <= _LARGEST_MASK or any(n != 1 for n in above):
        return False
    if stored.dtype in FLOATS and not re.search(r"mask|tril|triu|causal|bias|future|tri", name, re.IGNORECASE):
        return False
    if stored.dtype.startswith("complex"):
        return False
    mask = stored.read().reshape(rows, columns)
    ones = torch.ones(rows, columns, dtype=torch.bool)
    if stored.dtype in FLOATS and bool((mask.float() < -100).any()):
        return bool(torch.equal(mask.float() > -100, ones.tril()) and (mask.float().tril() == 0).all())
    if not bool(((mask == 0) | (mask == 1)).all()):
        return False
    said = mask.bool()
    if torch.equal(said, ones.tril()):
        return True
    return bool(torch.equal(said, ones.triu(1)))
