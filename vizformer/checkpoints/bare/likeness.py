"""Describes the tensors of a file in words, for messages about files that no layout opens.

Only what stands in the file is said: names, shapes, and the habit of naming that they follow.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from vizformer.checkpoints.files.untrusted_folder import shown
from vizformer.checkpoints.files.weights import Stored, Weights
from vizformer.checkpoints.tensors.tensor_map import Shape
from vizformer.messages import N_, Message

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
_KINDS: tuple[tuple[str, Message], ...] = (
    (
        r"\.(?:self|cross)_attention\.W_[QKVO]\.(?:weight|bias)$",
        N_("the weights of a model folder of VizFormer, whose config.json is missing or says something else"),
    ),
    (r"lora_[AB]\b", N_("additions to the weights of another model (LoRA), which are no model alone")),
    (r"\.(?:qweight|qzeros|absmax|quant_state.*)$", N_("quantised weights, packed with a few bits each")),
)
_RECURRENT = r"\.?weight_[ih]h_l\d"


class Like(NamedTuple):
    name: str  # a tensor that shows it
    what: Message | None  # in words; None where `family` says it
    family: str = ""  # the family of `transformers` that has such names; empty for others


def like(tensors: Mapping[str, Stored]) -> Like | None:
    """The first habit of naming that the tensors follow; None where nothing is recognised."""
    for pattern, family in _FAMILIES:
        if found := _first(pattern, tensors):
            return Like(found, None, family)
    for pattern, what in _KINDS:
        if found := _first(pattern, tensors):
            return Like(found, what)
    if found := _first(_RECURRENT, tensors):
        return Like(found, N_("a recurrent network"))
    pictures = next((name for name, stored in tensors.items() if len(stored.shape) == 4), "")
    if not pictures:
        return None
    return Like(pictures, N_("convolutions, as networks for pictures have them"))


def _first(pattern: str, tensors: Mapping[str, Stored]) -> str:
    matrices = (name for name, stored in tensors.items() if len(stored.shape) > 1)
    return next((name for name in matrices if re.search(pattern, name, re.IGNORECASE)), "")


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
    found, n = like(weights.tensors), len(weights.tensors)
    if found is not None and found.family:
        return N_(
            "{file} holds {n} tensors with names that `transformers` gives {family}, such as {name}. These families "
            "open with their config.json: put it and the tokenizer beside the weights and open the folder.",
            file=file,
            n=n,
            family=found.family,
            name=shown(found.name),
        )
    holds = N_("It holds {n} tensors: {summary}.", n=n, summary=summary(weights))
    if found is not None and found.what is not None:
        holds = N_("{holds} They look like {what} ({name}).", holds=holds, what=found.what, name=shown(found.name))
    return N_(
        "{file} contains only weights, and a file of weights does not say what the model computes with "
        "them. Save the model with its program, as a Hugging Face folder (save_pretrained), or describe "
        "it in Python: vf.load(path, config=..., mapping=...). Weights alone open if their tensors have "
        "the names of these: {layouts}. {holds}",
        file=file,
        holds=holds,
        layouts=layouts,
    )
