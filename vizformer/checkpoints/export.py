"""`save`: our own format, or back to the Hugging Face layout, so that `transformers` opens the model."""

import json
from collections.abc import Collection
from dataclasses import fields
from pathlib import Path
from typing import Literal

import torch

from vizformer.checkpoints.files.weights import write_weights
from vizformer.checkpoints.hugging_face.families import FAMILIES
from vizformer.checkpoints.hugging_face.family import Export, Family
from vizformer.checkpoints.own import CONFIG, TOKENIZER, WEIGHTS, Checkpoint, save_own
from vizformer.checkpoints.tokenizers.special_tokens import SETTINGS
from vizformer.config import ModelConfig
from vizformer.errors import CheckpointError

Layout = Literal["vizformer", "hugging-face"]
_WITHOUT_EFFECT = ("dropout", "mask_id")  # on the forward of a trained model
_ROLES = {"bos_id": "bos_token", "eos_id": "eos_token", "pad_id": "pad_token", "mask_id": "mask_token"}


def save(
    checkpoint: Checkpoint, folder: Path, dtype: torch.dtype = torch.float16, *, layout: Layout = "vizformer"
) -> None:
    """Writes a folder that `load` opens, and `transformers` too where `layout` is "hugging-face".

    float16 halves the size and keeps about three digits.

    Raises:
        CheckpointError: "hugging-face" for a model that is like none of the families that have a way back; a model that its
            own code computes.
    """
    if not checkpoint.is_own:
        raise CheckpointError(
            "{name} is computed by its own code, which alone knows how it is written: use its save_pretrained, where it has "
            "one (checkpoint.module.save_pretrained(folder)).",
            name=checkpoint.name,
        )
    if layout == "vizformer":
        save_own(checkpoint, folder, dtype)
        return
    config = checkpoint.model.config
    family, way = _fitting(config)
    has_head, state = checkpoint.has_head, checkpoint.model.state_dict()
    weights = {
        _stored_name(part.source, family, has_head): part.join(state).to(dtype) for part in family.weights(config)
    }
    folder.mkdir(parents=True, exist_ok=True)
    write_weights(weights, folder / WEIGHTS, {"format": "pt"})
    said = {"model_type": way.model_type, **way.fields(config, has_head), "dtype": str(dtype).removeprefix("torch.")}
    (folder / CONFIG).write_text(json.dumps(said, indent=2) + "\n", encoding="utf-8")
    checkpoint.tokenizer.save(folder / TOKENIZER)
    (folder / SETTINGS).write_text(json.dumps(_settings(checkpoint), indent=2) + "\n", encoding="utf-8")


def _fitting(config: ModelConfig) -> tuple[Family, Export]:
    """The family whose arithmetic this config is; where there is none, the error says how far the nearest one is."""
    nearest: tuple[list[str], str] | None = None
    ways = [(family, way) for family in FAMILIES for way in family.exports]
    for family, way in ways:
        others = _others(config, way)
        if not others:
            return family, way
        if nearest is None or len(others) < len(nearest[0]):
            nearest = others, family.name
    names, family_name = nearest if nearest is not None else ([], "-")
    raise CheckpointError(
        "None of these families fits this model, so it cannot be saved in Hugging Face layout: "
        "{families}. The nearest one is {nearest}, apart from {options}. Save it in VizFormer's own "
        "format.",
        families=", ".join(dict.fromkeys(family.name for family, __ in ways)),
        nearest=family_name,
        options=", ".join(f"{name}={getattr(config, name)!r}" for name in names),
    )


def _others(config: ModelConfig, way: Export) -> list[str]:
    """The options that the family has no place for."""
    legal = {option.name: (option.default,) for option in fields(ModelConfig) if option.name not in way.written}
    for name in (*_WITHOUT_EFFECT, *config.without_meaning()):
        legal.pop(name, None)
    return [name for name, values in {**legal, **way.fits}.items() if not _is_among(getattr(config, name), values)]


def _is_among(value: object, values: Collection[object]) -> bool:
    """Whether an option may have this value; for anything but a whole number a range would look through all its numbers."""
    return not (isinstance(values, range) and not isinstance(value, int)) and value in values


def _stored_name(source: str, family: Family, has_head: bool) -> str:
    """The head's tensors, and those of a model without a head, carry no prefix."""
    return source if not has_head or source.startswith(family.head) else f"{family.prefix}{source}"


def _settings(checkpoint: Checkpoint) -> dict[str, object]:
    """tokenizer_config.json: which class reads tokenizer.json, and the special tokens by role."""
    config = checkpoint.model.config
    ids = {role: getattr(config, option) for option, role in _ROLES.items()}
    marks = {role: checkpoint.tokenizer.tokens([id])[0].piece for role, id in ids.items() if id is not None}
    return {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": config.max_positions, **marks}
