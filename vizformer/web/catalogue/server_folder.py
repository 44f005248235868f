"""Models from the folder that whoever runs the server names (`vizformer --models DIR`): subfolders, files of weights.

What they are called in links: `vizformer.web.link.model_ref`.
"""

import os
import re
from pathlib import Path

from vizformer.checkpoints.files import formats
from vizformer.checkpoints.files.untrusted_folder import Folder
from vizformer.errors import CheckpointError
from vizformer.web.catalogue.session_folders import stamp_of_files
from vizformer.web.link.model_ref import FILE_NAME, ModelRef

VARIABLE = "VIZFORMER_MODELS"
CONFIG = "config.json"
# Bare, alone in the folder or in a subfolder; other names are told by what the file begins with.
WEIGHTS = (".safetensors", ".pt", ".pth", ".bin", ".ckpt")
# Of other programs, which do not open; the loader says what they are.
OTHERS = (
    ".gguf",
    ".ggml",
    ".msgpack",
    ".h5",
    ".hdf5",
    ".keras",
    ".onnx",
    ".ckpt.index",
    ".ckpt.meta",
    ".pb",
    ".tflite",
    ".npy",
    ".npz",
)
# What is read with a file of weights.
BESIDE = (CONFIG, "tokenizer.json", "vocab.json", "merges.txt", "tokenizer.model", "source_tokenizer.json")


def root() -> Path | None:
    """The folder with the models; None where none was named, or it is gone."""
    named = os.environ.get(VARIABLE, "").strip()
    return Path(named) if named and os.path.isdir(named) else None


def listed() -> tuple[ModelRef, ...]:
    """All models in the server's folder, whether they open or not."""
    try:
        names = sorted(os.listdir(root() or ""))
    except OSError:
        return ()
    found = (ModelRef("models", name) for name in names)
    return tuple(model for model in found if locate(model) is not None)


def locate(model: ModelRef) -> Path | None:
    """The subfolder of that name, if it holds a model, or the file; no link that leads elsewhere."""
    above = root()
    if above is None or not re.fullmatch(FILE_NAME, model.name) or model.name != model.name.strip():
        return None
    try:
        real = (above / model.name).resolve(strict=True)
        inside = above.resolve() in real.parents
    except (OSError, RuntimeError, ValueError):
        return None
    return real if inside and _may_be_model(real) else None


def title(model: ModelRef) -> str:
    """The name of a model in lists: that of its folder or file."""
    return model.name


def absent(model: ModelRef) -> CheckpointError:
    """Why there is no such model."""
    return CheckpointError("The model {name} is no longer on this server. Choose another one.", name=model.name)


def stamp(path: Path) -> str:
    """Says which version of the files lies there."""
    return stamp_of_files(path, BESIDE)


def _may_be_model(path: Path) -> bool:
    """A folder with a config.json or weights, or a file of weights."""
    if path.is_file():
        return path.name.lower().endswith(WEIGHTS) or bool(formats.writer_of(path))
    try:
        names = os.listdir(path)
    except OSError:
        return False
    by_name = CONFIG in names or any(name.lower().endswith(WEIGHTS) for name in names)
    return by_name or bool(formats.weights_in(Folder(path)))
