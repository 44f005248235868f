"""Fills the weights of a model."""

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from vizformer.checkpoints.tensors.matching import Found
from vizformer.checkpoints.tensors.placement import place
from vizformer.checkpoints.tensors.tensor_map import Part, Shape
from vizformer.model import Transformer

Used = Sequence[tuple[Part, Found]]


def fill(
    empty: Transformer,
    used: Used,
    shapes: Mapping[str, Shape],
    made: Mapping[str, Callable[[], Tensor]],
    dtype: torch.dtype,
    device: torch.device,
) -> Transformer:
    """The model `empty` with its numbers, where it computes and in its precision."""
    state: dict[str, Tensor] = {}
    for part, found in used:
        state |= part.split(place(found.read(), dtype, device, found.name), shapes)
    state |= {name: place(make(), dtype, device) for name, make in made.items()}
    empty.load_state_dict(state, assign=True)
    empty.materialise_buffers()
    return empty
