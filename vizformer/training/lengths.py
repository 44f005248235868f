"""Tiny language models with different positions, which read texts longer than those that they were trained on.

All were trained on the same windows of 64 bytes (`recipes.bundled_models.lengths`); they are then read windows of 256.
"""

import json
from pathlib import Path
from typing import Any, get_args

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from numpy import ndarray
from torch import Tensor

from vizformer.model import Transformer
from vizformer.options import Positions

LONGEST = 256  # bytes that are read at a time
SCHEMES: tuple[Positions, ...] = get_args(Positions)
MEASURED = "measured.json"


def byte_ids(text: bytes) -> Int[Tensor, " n"]:
    """The token ids of the models: the values of the bytes."""
    return torch.frombuffer(bytearray(text), dtype=torch.uint8).long()


@torch.inference_mode()
def losses(model: Transformer, ids: Int[Tensor, "b n"]) -> Float[Tensor, "b length"]:
    """-ln p(byte i + 1 | bytes 0..i) in nats, for every position that the model has."""
    inputs, labels = ids[:, :-1], ids[:, 1:]
    if model.config.positions == "learned":
        inputs, labels = inputs[:, : model.config.max_positions], labels[:, : model.config.max_positions]
    logits: Tensor = model(inputs)  # [b, length, 256]
    return F.cross_entropy(logits.flatten(0, 1).float(), labels.flatten(), reduction="none").reshape(labels.shape)


def byte_losses(model: Transformer, text: bytes) -> Float[ndarray, " length"]:
    """The `losses` of one text, in float64."""
    found: Float[ndarray, " length"] = losses(model, byte_ids(text)[None])[0].double().numpy()
    return found


def continued(text: str, passage: str | None) -> bytes:
    """The `LONGEST` + 1 bytes that the models read: the text, then a passage, or the text repeated if `passage` is
    None.
    """
    start, needed = text.encode(), LONGEST + 1
    if passage is None:
        start += b" "
        return (start * (needed // len(start) + 1))[:needed]
    return (start + b"\n" + passage.encode() * 2)[:needed]


def mean_from(curve: Float[ndarray, " length"], first: int) -> float | None:
    """The mean loss from position `first` on; None if the model has no such positions."""
    return float(curve[first:].mean()) if len(curve) > first else None


def measured(folder: Path) -> dict[str, Any]:
    """The measurements of a folder's models from their training; "loss" maps held-out text -> scheme -> loss by
    position.
    """
    notes: dict[str, Any] = json.loads((folder / MEASURED).read_text(encoding="utf-8"))
    notes["loss"], notes["seconds"], notes["machine"] = {}, {}, {}
    for scheme in SCHEMES:
        if (folder / scheme / MEASURED).is_file():
            of = json.loads((folder / scheme / MEASURED).read_text(encoding="utf-8"))
            notes["seconds"][scheme], notes["machine"][scheme] = of["seconds"], of["machine"]
            for name, curve in of["loss"].items():
                notes["loss"].setdefault(name, {})[scheme] = curve
    return notes
