"""Fills the weights of a model: all at once, or layer by layer as each is needed."""

import copy
import re
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor, nn

from vizformer.checkpoints.tensors.matching import Found
from vizformer.checkpoints.tensors.placement import place
from vizformer.checkpoints.tensors.tensor_map import Part, Shape
from vizformer.model import Transformer
from vizformer.model.streamed_layers import Resident, StreamedLayers

LAYER = re.compile(r"(?P<stack>encoder|decoder)\.layers\.(?P<number>\d+)\.")
Used = Sequence[tuple[Part, Found]]


def fill(
    empty: Transformer,
    used: Used,
    shapes: Mapping[str, Shape],
    made: Mapping[str, Callable[[], Tensor]],
    dtype: torch.dtype,
    device: torch.device,
    *,
    stream: bool = False,
) -> Transformer:
    """The model `empty` with its numbers; with `stream`, its layers stay in the file, and one is in memory at a time."""

    def numbers(wanted: Callable[[str], bool]) -> dict[str, Tensor]:
        """The parameters of some names, where the model computes and in its precision."""
        state: dict[str, Tensor] = {}
        for part, found in used:
            if any(map(wanted, part.targets)):
                pieces = part.split(place(found.read(), dtype, device, found.name), shapes)
                state |= {name: piece for name, piece in pieces.items() if wanted(name)}
        return state | {name: place(make(), dtype, device) for name, make in made.items() if wanted(name)}

    if not stream:
        empty.load_state_dict(numbers(lambda name: True), assign=True)
        empty.materialise_buffers()
        return empty
    resident = Resident()
    for stack in (empty.encoder, empty.decoder):
        if stack is not None:
            layers = stack.layers
            assert isinstance(layers, nn.ModuleList)
            make = _maker(layers, f"{stack.name}.layers", numbers)
            stack.layers = StreamedLayers(layers, stack.name, make, resident)
    for name, tensor in numbers(lambda name: LAYER.match(name) is None).items():
        _set(empty, name, tensor)
    empty.materialise_buffers()
    return empty


def _maker(
    layers: nn.ModuleList, where: str, numbers: Callable[[Callable[[str], bool]], dict[str, Tensor]]
) -> Callable[[int], nn.Module]:
    def make(index: int) -> nn.Module:
        prefix = f"{where}.{index}."
        state = {name.removeprefix(prefix): t for name, t in numbers(lambda name: name.startswith(prefix)).items()}
        layer = copy.deepcopy(layers[index])
        layer.load_state_dict(state, assign=True)
        return layer.eval().requires_grad_(False)

    return make


def _set(model: nn.Module, name: str, tensor: Tensor) -> None:
    """One parameter beside the layers."""
    module, __, last = name.rpartition(".")
    setattr(model.get_submodule(module), last, nn.Parameter(tensor, requires_grad=False))
