"""The language model inside a model for pictures and texts: what its config.json says of it, and which tensors are its own.

A text alone goes through the language model and through nothing else: the tower that reads pictures, and what brings its
rows to the width of the language model, are left aside.  Qwen's rotary positions count a token's place three times, in time,
height and width (M-RoPE); for the tokens of a text the three are one number, and its pairs turn like any others.

Source: `transformers`; Wang et al. 2024, "Qwen2-VL: Enhancing Vision-Language Model's Perception of the World at Any
Resolution", section 2.1.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch

from vizformer.checkpoints.files.untrusted_folder import shown
from vizformer.checkpoints.files.weights import Stored, Weights
from vizformer.checkpoints.hugging_face.families import BY_TYPE
from vizformer.checkpoints.hugging_face.family import Family
from vizformer.checkpoints.hugging_face.fields import KNOWN, NEUTRAL
from vizformer.checkpoints.tensors.memory import size
from vizformer.errors import CheckpointError
from vizformer.messages import N_, Message

CONFIG, TEXT, TIED = "config.json", "text_config", "tie_word_embeddings"
LLAMA_LIKE = ("llama", "mistral", "qwen2", "qwen3")  # whose logits are x W_U alone, as all of these models compute them
# model_type -> those of the language models that may be inside, the usual one first.
INSIDE: Mapping[str, tuple[str, ...]] = {
    "gemma3": ("gemma3_text",),
    "gemma3n": ("gemma3n_text",),
    "gemma4": ("gemma4_text",),
    "llava": LLAMA_LIKE,
    "llava_next": LLAMA_LIKE,
    "mistral3": ("ministral3", "mistral"),
    "qwen2_vl": ("qwen2_vl_text",),
    "qwen2_5_vl": ("qwen2_5_vl_text",),
    "qwen3_vl": ("qwen3_vl_text",),
}
_FLAT = ("qwen2_vl", "qwen2_5_vl")  # whose first files have the fields of both in one table
# where tie_word_embeddings is true unless the file says otherwise
_TIED = ("gemma3", "gemma3n", "gemma4", "mistral3")
_TIED_BY_EITHER = ("llava", "llava_next", "qwen2_vl", "qwen2_5_vl")  # where the language model's own field counts too
_MARKS = ("bos_token_id", "eos_token_id", "pad_token_id")
_OF_PICTURES = re.compile(r"(vision_|image_|video_).*")
_RENAMED = {r"^language_model\.(lm_head\.)?(model\.)?": r"\1"}
PICTURES = N_("the part that reads images, which text does not pass through")
SOUND = N_("the part that reads sound, which text does not pass through")
_SOUND = r"(audio_tower|embed_audio)(\..*)?"
_ASIDE = r"(embed_vision|vision_tower|vision_model|visual|multi_modal_projector|image_newline)(\..*)?"


def language_model(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The config of the language model with the fields of the whole model; a copy of `raw` where there is only one."""
    kind = raw.get("model_type")
    if not isinstance(kind, str) or kind not in INSIDE:
        return dict(raw)
    said, usual = raw.get(TEXT), INSIDE[kind][0]
    if said is None and kind in _FLAT:
        said = {name: value for name, value in raw.items() if not _OF_PICTURES.fullmatch(name)} | {"model_type": usual}
    if not isinstance(said, dict):
        raise CheckpointError(
            "{file} says model_type={kind}, a language model combined with an image model, but has no "
            "table {field} that describes the language model. Copy it again from the model's source.",
            file=CONFIG,
            kind=shown(kind),
            field=TEXT,
        )
    inner = said.get("model_type", usual)
    if inner not in INSIDE[kind]:
        raise CheckpointError(
            "{file} says model_type={kind} with a language model of model_type={inner}, which is not supported inside "
            "another one. These are: {types}. Take a model with one of them.",
            file=CONFIG,
            kind=shown(kind),
            inner=shown(inner),
            types=", ".join(INSIDE[kind]),
        )
    whole = {name: raw[name] for name in (*_MARKS, "architectures") if name in raw}
    strange = {
        name: raw[name] for name, usual in NEUTRAL.items() if name != TEXT and raw.get(name, usual[0]) not in usual
    }
    tied = raw.get(TIED, kind in _TIED)
    if tied is False and kind in _TIED_BY_EITHER:
        tied = said.get(TIED, KNOWN[inner]["defaults"].get(TIED, False))
    found = {**whole, **said, **strange, "model_type": inner, TIED: tied}
    if "architectures" in whole:
        found["architectures"] = whole["architectures"]
    if kind == "gemma3":  # which reads the rows of the language model, and not the logits that it bends
        found["final_logit_softcapping"] = None
    return found


def inside(family: Family) -> Family:
    """`family` with the names of its tensors inside another model, and those of the others left aside."""
    unused = {_ASIDE: PICTURES, _SOUND: SOUND, **family.unused}
    return replace(family, renamed={**_RENAMED, **family.renamed}, unused=unused)


def family_inside(raw: Mapping[str, Any]) -> Family | None:
    """The family of the language model; None where there is nothing beside it, or it is of no family."""
    if raw.get("model_type") not in INSIDE:
        return None
    family = BY_TYPE.get(language_model(raw)["model_type"])
    return None if family is None else inside(family)


def without_tower(weights: Weights) -> tuple[dict[str, Stored], dict[str, Message], dict[str, str]]:
    """The language model's tensors, as its class names them; why the others are left aside; names for `left_aside`."""
    names = {}
    for stored in weights.tensors:
        name = stored.removeprefix("model.")
        for pattern, replacement in _RENAMED.items():
            name = re.sub(pattern, replacement, name)
        names[name] = stored
    aside = {names[name]: PICTURES if re.fullmatch(_ASIDE, name) else SOUND for name in names if _beside(name)}
    kept = {
        name if name.startswith("lm_head.") else f"model.{name}": weights.tensors[stored]
        for name, stored in names.items()
        if stored not in aside
    }
    return kept, aside, names


def _beside(name: str) -> bool:
    return re.fullmatch(f"{_ASIDE}|{_SOUND}", name) is not None


def left_aside(kind: str, names: Mapping[str, str], weights: Weights) -> Message:
    """What of the file is not opened; `names`: the family's name of every tensor -> its name in the file."""
    aside = [weights.tensors[stored] for name, stored in names.items() if re.fullmatch(_ASIDE, name)]
    n_bytes = sum(math.prod(one.shape) * getattr(torch, one.dtype, torch.float32).itemsize for one in aside)
    return N_(
        "this is the language model of {kind}; VizFormer does not open the part that reads images: {n:,} "
        "tensors, {size}",
        kind=kind,
        n=len(aside),
        size=size(n_bytes),
    )
