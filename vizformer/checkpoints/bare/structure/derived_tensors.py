"""Tensors that are made of tensors of the file: heads joined, matrices turned over, a norm's one number for all."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from vizformer.checkpoints.files.weights import FLOATS, Stored, Weights
from vizformer.checkpoints.tensors.report import TensorFate
from vizformer.checkpoints.tensors.tensor_map import Shape


@dataclass(frozen=True)
class Made:
    """What a tensor is made of, its shape, and how."""

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


def joined(sources: Sequence[str], shape: Shape, *, turn: bool = False, columns: bool = False) -> Made:
    """Matrices or vectors one under the other (with `columns` side by side), each turned over before."""

    def build(tensors: Sequence[Tensor]) -> Tensor:
        whole = [tensor.T for tensor in tensors] if turn else list(tensors)
        return torch.cat(whole, dim=1 if columns else 0)

    return Made(tuple(sources), shape, build)


def repeated(source: str, shape: Shape, n: int) -> Made:
    """What every head has alike, for all heads: a matrix along the diagonal, 0 elsewhere; a bias again and again."""

    def build(tensors: Sequence[Tensor]) -> Tensor:
        if len(shape) == 1:
            return tensors[0].repeat(n)
        diagonal = torch.eye(n, dtype=tensors[0].dtype)  # [n, n]
        return torch.kron(diagonal, tensors[0].contiguous())

    return Made((source,), tuple(n * side for side in shape), build)


def flattened(source: str, shape: Shape) -> Made:
    """A convolution over one position, [out, in, 1], which is a matrix."""
    return reshaped(source, shape[:2])


def rolled(source: str, shape: Shape, first: int) -> Made:
    """A table whose row `first` becomes row 0, the next one row 1, and those before it the last ones."""
    return Made((source,), shape, lambda tensors: tensors[0].roll(-first, 0))


def expanded(source: str, width: int) -> Made:
    """One number for a whole row."""
    return Made((source,), (width,), lambda tensors: tensors[0].reshape(1).expand(width).contiguous())
