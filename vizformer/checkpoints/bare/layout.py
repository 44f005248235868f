"""The layout of bare weights for the loader: names, questions, the mapping of tensors; and a file's tensors in words."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import torch
from torch import Tensor

from vizformer.checkpoints.bare.derived_tensors import Made
from vizformer.checkpoints.files.untrusted_folder import shown
from vizformer.checkpoints.files.weights import FLOATS, Stored, Weights
from vizformer.checkpoints.hugging_face.family import Options
from vizformer.checkpoints.tensors.questions import Question, Value
from vizformer.checkpoints.tensors.tensor_map import Part, Shape
from vizformer.errors import CheckpointError
from vizformer.messages import N_, Message

# Describes the tensors of a file in words, for messages about files that no layout opens.
#
# Only what stands in the file is said: names, shapes, and the habit of naming that they follow.

MOST = 8  # kinds of tensors in one message
# Names that `transformers` gives the families that open with their config.json.
_FAMILIES = (
    (r"\.layer\.\d+\.attention\.self\.query\.weight", "BERT / RoBERTa"),
    (r"\.layer\.\d+\.attention\.q_lin\.weight", "DistilBERT"),
    (r"\.layers\.\d+\.attention\.query_key_value\.weight", "GPT-NeoX"),
    (r"\.block\.\d+\.layer\.0\.SelfAttention\.q\.weight", "T5"),
    (r"(?:encoder|decoder)\.layers\.\d+\.self_attn\.q_proj\.weight", "BART / Marian / OPT"),
    (r"layers\.\d+\.self_attn\.q_proj\.weight", "LLaMA"),
)
# What is no model alone, or lies beside the file that says what it is.
_KINDS: tuple[tuple[str, Message], ...] = (
    (
        r"\.(?:self|cross)_attention\.W_[QKVO]\.(?:weight|bias)$",
        N_("the weights of a model folder of VizFormer, whose config.json is missing or says something else"),
    ),
    (r"lora_[AB]\b", N_("additions to the weights of another model (LoRA), which are no model alone")),
    (r"\.(?:qweight|qzeros|absmax|quant_state.*)$", N_("quantised weights, packed with a few bits each")),
)
Said = TypeVar("Said", str, Message)


def like(tensors: Mapping[str, Stored], habits: Sequence[tuple[str, Said]]) -> tuple[Said, str] | None:
    """The first habit of naming that the tensors follow, and one that shows it; None where they follow none."""
    matrices = [name for name, stored in tensors.items() if len(stored.shape) > 1]
    for pattern, said in habits:
        if found := next((name for name in matrices if re.search(pattern, name, re.IGNORECASE)), ""):
            return said, found
    return None


def summary(weights: Weights) -> str:
    """The tensors by kind: the numbers of layers and heads are written #."""
    kinds = by_kind({name: stored.shape for name, stored in weights.tensors.items()})
    lines = [
        f"{shown(kind)} {list(shape)} × {len(names)}" if len(names) > 1 else f"{shown(names[0])} {list(shape)}"
        for (kind, shape), names in list(kinds.items())[:MOST]
    ]
    return ", ".join(lines) + (", …" if len(kinds) > MOST else "")


def by_kind(shapes: Mapping[str, Shape]) -> dict[tuple[str, Shape], list[str]]:
    """Names that differ only in the numbers of layers and heads, with one shape."""
    kinds: dict[tuple[str, Shape], list[str]] = {}
    for name, shape in shapes.items():
        kinds.setdefault((re.sub(r"(?<=\.)\d+(?=\.|$)", "#", name), shape), []).append(name)
    return kinds


def unrecognised(file: str, weights: Weights, layouts: str) -> Message:
    """Says what a file holds of which no layout knows the names, and what would open."""
    n = len(weights.tensors)
    if (found := like(weights.tensors, _FAMILIES)) is not None:
        return N_(
            "{file} holds {n} tensors with names that `transformers` gives {family}, such as {name}. These families "
            "open with their config.json: put it and the tokenizer beside the weights and open the folder.",
            file=file,
            n=n,
            family=found[0],
            name=shown(found[1]),
        )
    holds = N_("It holds {n} tensors: {summary}.", n=n, summary=summary(weights))
    if (kind := like(weights.tensors, _KINDS)) is not None:
        holds = N_("{holds} They look like {what} ({name}).", holds=holds, what=kind[0], name=shown(kind[1]))
    return N_(
        "{file} contains only weights, and a file of weights does not say what the model computes with "
        "them. Save the model with its program, as a Hugging Face folder (save_pretrained), or describe "
        "it in Python: vf.load(path, config=..., mapping=...). Weights alone open if their tensors have "
        "the names of these: {layouts}. {holds}",
        file=file,
        holds=holds,
        layouts=layouts,
    )


_LOSS = re.compile(r"(?:.*\.)?(?:criterion|loss|(?:criterion|loss)_\w+|\w+_(?:criterion|loss))\.(?:weight|pos_weight)")


@dataclass(frozen=True)
class Plan:
    """A model that the tensors may be the weights of."""

    options: Options
    parts: list[Part]
    has_head: bool = True  # whether the weights predict tokens
    ties: Mapping[str, str] = field(default_factory=dict)  # names under which a tensor is repeated
    unused: Mapping[str, Message] = field(default_factory=dict)  # names of tensors that are not needed -> why
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


def of_losses(weights: Weights) -> dict[str, Message]:
    """The class weights of a training loss, which no forward uses, with a note on each."""
    note = N_("the class weights of the training loss: the model does not use them")
    return {name: note for name, stored in weights.tensors.items() if _LOSS.fullmatch(name) and len(stored.shape) < 2}
