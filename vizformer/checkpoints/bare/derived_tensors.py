"""Tensors that are made of tensors of the file: matrices turned over, tables cut, heads joined."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from vizformer.checkpoints.files.weights import FLOATS, Stored, Weights
from vizformer.checkpoints.tensors.report import TensorFate
from vizformer.checkpoints.tensors.tensor_map import Shape


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
