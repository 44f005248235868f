"""`load` and `inspect`: a name or a path becomes a model, or a report of what is there."""

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from vizformer.assets import asset, bundled_models
from vizformer.checkpoints import folder as own
from vizformer.checkpoints import hugging_face
from vizformer.checkpoints.checkpoint import Checkpoint
from vizformer.checkpoints.reading import Folder
from vizformer.checkpoints.report import Report
from vizformer.checkpoints.weights import gguf_message
from vizformer.errors import CheckpointError
from vizformer.messages import N_

CONFIG = "config.json"


@dataclass(frozen=True, eq=False)
class Opened(Checkpoint):
    """A checkpoint that was read from files, with the report of how."""

    report: Report


def load(source: str | Path, *, dtype: torch.dtype = torch.float32) -> Opened:
    """Opens a bundled model by name, or a folder: in our format or in Hugging Face layout, as its config.json says.

    Weights are kept in `dtype`, frozen.

    Raises:
        CheckpointError: nothing there, or files that are damaged, unsupported or do not fit together; names the file,
            what was found and the way out, all problems of a file at once.
        ConfigError, TokenizerError: illegal options, an unreadable tokenizer, in our own format.
    """
    folder = _folder(source)
    raw = _config(folder)
    if _is_ours(raw):
        model, tokenizer, report = own.open_own(folder, raw, dtype)
        return Opened(folder.name, model, tokenizer, report)
    examined = hugging_face.examine(folder, raw)
    return Opened(folder.name, hugging_face.build(examined, dtype), examined.tokenizer, examined.report)


def inspect(source: str | Path, *, numbers: bool = True) -> Report:
    """What is in a folder and what became of every tensor; tensors that do not fit stand in the report.

    `numbers=False` does not look for NaN and infinite ones (in Hugging Face layout), which takes reading all of them.

    Raises:
        CheckpointError: as `load`, where there is nothing to report on.
    """
    folder = _folder(source)
    raw = _config(folder)
    if _is_ours(raw):
        return own.open_own(folder, raw, torch.float32)[2]
    examined = hugging_face.examine(folder, raw)
    report = examined.report
    if report.problems or not numbers:
        return report
    return replace(report, problems=tuple(hugging_face.wrong_numbers(examined)))


def _folder(source: str | Path) -> Folder:
    if str(source) in bundled_models():
        return Folder(asset("models", str(source)))
    if os.path.isdir(source):  # (Path.is_dir raises where a name is too long)
        try:
            return Folder(Path(source))
        except (OSError, RuntimeError, ValueError):
            pass
    if os.path.isfile(source):
        name = Path(source).name
        raise CheckpointError(
            gguf_message(name) if name.lower().endswith(".gguf") else
            N_("{file} is a file; a model is a folder with config.json, the weights and the tokenizer. Give the path "
               "of the folder it lies in.", file=name)
        )  # fmt: skip
    raise CheckpointError(
        N_("There is no model {source!r}. Give the path of a folder, or one of: {names}.", source=str(source),
           names=", ".join(bundled_models()) or "-")
    )  # fmt: skip


def _config(folder: Folder) -> dict[str, Any]:
    if not folder.has(CONFIG):
        for name in folder.names():
            if name.lower().endswith(".gguf"):
                raise CheckpointError(gguf_message(name))
        raise CheckpointError(own.lacks(folder, CONFIG))
    raw = folder.json(CONFIG)
    if not isinstance(raw, dict) or not (_is_ours(raw) or "model_type" in raw):
        raise CheckpointError(
            N_("{file} does not say format {format!r}: this folder was not written by VizFormer. Nor does it say "
               "model_type, as the Hugging Face layout does. Give the folder of a model in one of the two.",
               file=CONFIG, format=own.FORMAT)
        )  # fmt: skip
    return raw


def _is_ours(raw: dict[str, Any]) -> bool:
    return raw.get("format") == own.FORMAT and isinstance(raw.get("model"), dict)
