"""The tensors of a file held against those that a config needs: the fate of each."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass, field

import torch
from torch import Tensor

from vizformer.checkpoints.files.untrusted_folder import shown
from vizformer.checkpoints.files.weights import FLOATS, Stored, Weights
from vizformer.checkpoints.tensors.memory import place
from vizformer.checkpoints.tensors.report import Fate, TensorFate
from vizformer.checkpoints.tensors.tensor_map import Part, Shape
from vizformer.context_value import held
from vizformer.messages import N_, Message
from vizformer.model import Transformer

_HEARD: ContextVar[Callable[[int], None] | None] = ContextVar("heard", default=None)


def hearing_reads(heard: Callable[[int], None]) -> AbstractContextManager[None]:
    """Has `heard` called with the bytes of each tensor that this thread reads; what it raises ends the reading.

    A model that is opened reads each of its tensors twice: to look for NaN, and to place its numbers.
    """
    return held(_HEARD, heard)


@dataclass(frozen=True)
class Found:
    """A tensor of the file by its name there."""

    name: str
    stored: Stored

    def read(self) -> Tensor:
        tensor = self.stored.read()
        if (heard := _HEARD.get()) is not None:
            heard(tensor.nbytes)
        return tensor


@dataclass(frozen=True)
class Match:
    """What fits and what does not."""

    used: tuple[tuple[Part, Found], ...]  # what is needed, with where it lies
    same: tuple[tuple[Found, Found], ...]  # pairs that must hold the same numbers
    fates: tuple[TensorFate, ...]
    problems: tuple[Message, ...]  # what is missing, of another shape, not floats, or unknown
    # what is not needed, as it follows from the options, and how
    computed: tuple[tuple[Found, Callable[[], Tensor]], ...] = ()
    made: Mapping[str, Callable[[], Tensor]] = field(default_factory=dict)


def match_parts(
    parts: Sequence[Part],
    ties: Mapping[str, str],
    reason: Callable[[str, Found], Message | None],
    names: Mapping[str, str],
    weights: Weights,
    shapes: Mapping[str, Shape],
    *,
    said_by: Message | str = "config.json",
) -> Match:
    """Holds the tensors against `parts`.

    `reason` says why a tensor that none of them asks for is not needed (None: it may be), and `said_by` what the shapes
    follow from.
    """
    found = {name: Found(stored, weights.tensors[stored]) for name, stored in names.items()}
    used: list[tuple[Part, Found]] = []
    same: list[tuple[Found, Found]] = []
    fates: list[TensorFate] = []
    problems: list[Message] = []

    for again, first in ties.items():
        if again not in found:
            continue
        second = found.pop(again)
        if first not in found:
            found[first] = second  # only the second name was stored
        else:
            same.append((found[first], second))
            fates.append(fate(second, "tied", note=N_("the same numbers as {name}", name=found[first].name)))
    for part in parts:
        needed = part.shape(shapes)
        tensor = found.pop(part.source, None)
        if tensor is None:
            problems.append(N_("{name} is missing", name=shown(part.source)))
            fates.append(TensorFate(part.source, "", needed, "", "missing", part.targets))
        elif tensor.stored.shape != needed:
            note = wrong_shape(tensor.name, tensor.stored.shape, needed, said_by)
            problems.append(note)
            fates.append(fate(tensor, "wrong shape", part, note))
        elif tensor.stored.dtype not in FLOATS:
            note = quantised(tensor.name, tensor.stored)
            problems.append(note)
            fates.append(fate(tensor, "unused", note=note))
        else:
            used.append((part, tensor))
            fates.append(fate(tensor, "used", part))
    for name, tensor in found.items():
        if (why := reason(name, tensor)) is None:
            why = of_no_part(tensor.name, said_by)
            problems.append(why)
        fates.append(fate(tensor, "unused", note=why))
    return Match(tuple(used), tuple(same), tuple(fates), tuple(problems))


def wrong_shape(name: str, has: Shape, needed: Shape, source: str | Message) -> Message:
    return N_(
        "{name} has shape {found}, but by {source} it must be {needed}",
        name=shown(name),
        found=list(has),
        needed=list(needed),
        source=source,
    )


def quantised(name: str, stored: Stored) -> Message:
    return N_(
        "{name} is stored as {dtype}, supported are {options}: quantised weights are not opened, take "
        "the model they were made from",
        name=shown(name),
        dtype=shown(stored.dtype),
        options=", ".join(FLOATS),
    )


def of_no_part(name: str, source: str | Message) -> Message:
    return N_("{name} belongs to no part of the model that {source} describes", name=shown(name), source=source)


def not_tied(first: str, second: str) -> Message:
    return N_(
        "{first} and {second} should be the same numbers (tie_word_embeddings) and are not",
        first=shown(first),
        second=shown(second),
    )


def fate(tensor: Found, fate: Fate, part: Part | None = None, note: Message | None = None) -> TensorFate:
    targets = () if part is None else part.targets
    stored = tensor.stored
    reordered = stored.copied or (part is not None and part.order is not None)
    return TensorFate(tensor.name, stored.file, stored.shape, stored.dtype, fate, targets, note, reordered)


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
