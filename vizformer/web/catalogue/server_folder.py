"""Models from the folder that whoever runs the server names (`vizformer --models DIR`): subfolders, files of weights.

What they are called in links and lists: `vizformer.web.catalogue.model_reference`.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path

VARIABLE = "VIZFORMER_MODELS"
CONFIG = "config.json"
WEIGHTS = (".safetensors", ".pt", ".pth", ".bin", ".ckpt")  # bare: alone in the folder, or in a subfolder
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
NAME = r"\w[\w.+ -]{0,79}"  # nothing that means something in a path or to a terminal; no hidden folder


def root() -> Path | None:
    """The folder with the models; None where none was named, or it is gone."""
    named = os.environ.get(VARIABLE, "").strip()
    return Path(named) if named and os.path.isdir(named) else None


def models(answered: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """The names of all models there, whether they open or not; `answered` has names with assumptions for some."""
    try:
        names = [f"models/{name}" for name in sorted(os.listdir(root() or "")) if locate(name) is not None]
    except OSError:
        return ()
    return tuple((answered or {}).get(name, name) for name in names)


def locate(name: str) -> Path | None:
    """The subfolder of that name, if it holds a model, or the file; no link that leads elsewhere."""
    above = root()
    if above is None or not re.fullmatch(NAME, name) or name != name.strip():
        return None
    try:
        real = (above / name).resolve(strict=True)
        inside = above.resolve() in real.parents
    except (OSError, RuntimeError, ValueError):
        return None
    return real if inside and _may_be_model(real) else None


def _may_be_model(path: Path) -> bool:
    """A folder with a config.json or weights, or a file of weights."""
    if path.is_file():
        return path.name.lower().endswith(WEIGHTS)
    try:
        names = os.listdir(path)
    except OSError:
        return False
    return CONFIG in names or any(name.lower().endswith(WEIGHTS) for name in names)
