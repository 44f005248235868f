"""The layout of bare weights for the loader: the names that it recognises, its questions, and the mapping of tensors."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from vizformer.checkpoints.bare.derived_tensors import Made
from vizformer.checkpoints.bare.likeness import summary
from vizformer.checkpoints.files.untrusted_folder import shown
from vizformer.checkpoints.files.weights import FLOATS, Stored, Weights
from vizformer.checkpoints.hugging_face.family import Options
from vizformer.checkpoints.tensors.questions import Question, Value
from vizformer.checkpoints.tensors.tensor_map import Part, Shape
from vizformer.errors import CheckpointError
from vizformer.messages import N_, Message

_LOSS = re.compile(r"(?:.*\.)?(?:criterion|loss|(?:criterion|loss)_\w+|\w+_(?:criterion|loss))\.(?:weight|pos_weight)")


@dataclass(frozen=True)
class Plan:
    """A model that the tensors may be the weights of."""

    options: Options
    parts: list[Part]
    has_head: bool = True  # whether the weights predict tokens
    ties: Mapping[str, str] = field(default_factory=dict)  # names under which a tensor is repeated
    unused: Mapping[str, Message] = field(default_factory=dict)  # names of tensors that are not needed -> why
    # names of tensors that have no place -> what they are taken for, where that can be told
    unplaced: Mapping[str, Message] = field(default_factory=dict)
    # parameters of ours for which there is no tensor -> what they are for this shape
    fills: Mapping[str, Callable[[Shape], Tensor]] = field(default_factory=dict)
    assumptions: tuple[Message, ...] = ()
    # tensors that stand in the place of others of the file, by name
    made: Mapping[str, Made] = field(default_factory=dict)


@dataclass(frozen=True)
class Layout:
    """A recognised layout: its questions, and the plan that maps its tensors once they are answered."""

    name: str  # name of the code that writes such tensor names
    questions: tuple[Question, ...]
    plan: Callable[[Mapping[str, Value]], Plan]
    # tensors that are to be read in another shape (a table of positions with a batch dimension)
    reshaped: Mapping[str, Shape] = field(default_factory=dict)
    reads_only_ids: bool = False  # whether a tokenizer would mean nothing, as there is no table of embeddings
    # fields beside the weights -> values under which the model computes what none does here
    refuses: Mapping[str, tuple[object, ...]] = field(default_factory=dict)
    said_by: Message | None = None  # the source of the shapes, where it is not the layout
    # what the tensors do say, by the name of the question that others have to answer
    known: Mapping[str, Value] = field(default_factory=dict)


def layers_of(names: Mapping[str, object], pattern: str) -> dict[str, int]:
    """How many layers there are under each prefix: `pattern` has the groups `prefix` and `index`.

    No prefix may hold what means something in a format string or a terminal: attributes of Python have no such names.
    """
    found: dict[str, set[str]] = {}
    for name in names:
        if matched := re.fullmatch(pattern, name):
            found.setdefault(matched["prefix"], set()).add(matched["index"])
    return {prefix: len(indices) for prefix, indices in found.items()}


def matrix(weights: Weights, name: str) -> Shape:
    """The shape of a tensor that must be a matrix."""
    stored = weights.tensors.get(name)
    if stored is None:
        raise CheckpointError(
            "{file} lacks {name}, which a model with such tensor names needs. The file contains: {summary}.",
            file=weights.where,
            name=shown(name),
            summary=summary(weights),
        )
    if len(stored.shape) != 2 or 0 in stored.shape:
        raise CheckpointError(
            "{name} in {file} has shape {found}, but must be a matrix. Save the state dict again.",
            file=weights.where,
            name=shown(name),
            found=list(stored.shape),
        )
    return stored.shape


def same_numbers(weights: Weights, first: str, second: str) -> bool:
    """Whether two tensors are the same, which the weights do say."""
    one, other = weights.tensors[first], weights.tensors[second]
    if one.shape != other.shape or one.dtype != other.dtype or one.dtype not in FLOATS:
        return False
    a, b = one.read(), other.read()
    return a.data_ptr() == b.data_ptr() or torch.equal(a, b)


def is_one(weights: Weights, weight: str | None, bias: str | None) -> bool:
    """Whether a norm scales by exactly 1 and shifts by 0, as an untrained one does, or one that nothing uses."""
    kept = ((name, value) for name, value in ((weight, 1), (bias, 0)) if name in weights.tensors)
    return all(bool((weights.tensors[name].read() == value).all()) for name, value in kept if name is not None)


UNUSED_NORM = N_("a norm that the model does not use: its weights are 1 and 0")


def zeros(shape: Shape) -> Tensor:
    """A bias that the file does not have."""
    return torch.zeros(shape)


def no_norm_biases(parts: list[Part], weights: Weights, norms: Mapping[str, str]) -> dict[str, Callable[..., Tensor]]:
    """Adds the parts of norms, theirs -> ours; if none has a bias, ours are 0, which changes nothing."""
    biased = any(f"{theirs}.bias" in weights.tensors for theirs in norms)
    fills: dict[str, Callable[..., Tensor]] = {}
    for theirs, ours in norms.items():
        parts.append(Part(f"{theirs}.weight", (f"{ours}.weight",)))
        if biased:
            parts.append(Part(f"{theirs}.bias", (f"{ours}.bias",)))
        else:
            fills[f"{ours}.bias"] = zeros
    return fills


def causal_masks(weights: Weights) -> dict[str, Message]:
    """Buffers of the attention that hold what follows from the positions: 1 at and below the diagonal."""
    note = N_("the causal mask: it follows from the positions")
    return {
        name: note
        for name, stored in weights.tensors.items()
        if name.endswith(".attn.masked_bias") or (name.endswith((".attn.bias", ".attn.mask")) and _is_causal(stored))
    }


def of_losses(weights: Weights) -> dict[str, Message]:
    """The class weights of a training loss, which no forward uses, with a note on each."""
    note = N_("the class weights of the training loss: the model does not use them")
    return {name: note for name, stored in weights.tensors.items() if _LOSS.fullmatch(name) and len(stored.shape) < 2}


def _is_causal(stored: Stored) -> bool:
    *above, rows, columns = stored.shape if len(stored.shape) > 1 else (0, 1)
    if rows != columns or any(n != 1 for n in above):
        return False
    mask = stored.read().reshape(rows, columns)
    return bool(torch.equal(mask, torch.ones_like(mask).tril()))
