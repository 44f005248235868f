"""Models from the folder that whoever runs the server names (`vizformer --models DIR`): subfolders, files of weights.

In links and lists such a model is called models/NAME: a reader never learns where on the server it lies, and what a
link says leads to nothing but what is listed.  Bare weights open under assumptions, which are part of the name:
models/NAME;n_heads=4;norm_order=pre.  Caches know a model as models/NAME@STAMP (after the assumptions), with a stamp of
the files as they are now: another model that takes its place on disk is never mistaken for it.
"""

import os
import re
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path

from vizformer.errors import CheckpointError
from vizformer.messages import N_

VARIABLE = "VIZFORMER_MODELS"
CONFIG = "config.json"
WEIGHTS = (".safetensors", ".pt", ".pth", ".bin", ".ckpt")  # bare: alone in the folder, or in a subfolder
BESIDE = (CONFIG, "tokenizer.json", "vocab.json", "merges.txt", "tokenizer.model")  # what is read with a file of them
_START = "models/"
_NAME = re.compile(r"\w[\w.+ -]{0,79}")  # nothing that means something in a path or to a terminal; no hidden folder
_ANSWER = "(?:;[a-z_]{1,20}=[A-Za-z0-9_.+-]{1,16})"
_KEY = re.compile(rf"{_START}({_NAME.pattern})({_ANSWER}{{0,16}})(?:@([0-9a-f]{{16}}))?")


def root() -> Path | None:
    """The folder with the models; None where none was named, or it is gone."""
    named = os.environ.get(VARIABLE, "").strip()
    return Path(named) if named and os.path.isdir(named) else None


def models(answered: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """The names of all models there, whether they open or not; `answered` has names with assumptions for some."""
    try:
        names = [f"{_START}{name}" for name in sorted(os.listdir(root() or "")) if _folder(name) is not None]
    except OSError:
        return ()
    return tuple((answered or {}).get(name, name) for name in names)


def base(model: str) -> str | None:
    """The name without assumptions; None for a key and for models of other kinds."""
    found = _KEY.fullmatch(model)
    return None if found is None or found[3] is not None else f"{_START}{found[1]}"


def answers(model: str) -> dict[str, str]:
    """The assumptions in a name or key, as they stand there."""
    found = _KEY.fullmatch(model)
    if found is None:
        return {}
    return {name: value for name, __, value in (item.partition("=") for item in found[2].split(";")[1:])}


def under(model: str, assumptions: Mapping[str, object]) -> str:
    """The name of a model under other assumptions."""
    return "".join([base(model) or model, *(f";{name}={value}" for name, value in assumptions.items())])


def is_name(model: str) -> bool:
    """Whether a name (or a key) is one of this kind, be there such a model or not."""
    return _KEY.fullmatch(model) is not None


def title(model: str) -> str:
    """What a model is called in lists: as its folder."""
    found = _KEY.fullmatch(model)
    return found[1] if found is not None else model


def key(model: str) -> str:
    """What caches know the model as now; other models' names are their keys, and so is what is a key already."""
    found = _KEY.fullmatch(model)
    if found is None or found[3] is not None:
        return model
    path = _folder(found[1])
    return model if path is None else f"{model}@{_stamp(path)}"


def folder(model: str) -> Path | None:
    """Where a model lies; None for models of other kinds.

    Raises:
        CheckpointError: it is gone, or a key says that its files were others.
    """
    found = _KEY.fullmatch(model)
    if found is None:
        return None
    path = _folder(found[1])
    if path is None:
        raise CheckpointError(N_("The model {name} is no longer on this server. Choose another one.", name=found[1]))
    if found[3] is not None and found[3] != _stamp(path):
        raise CheckpointError(
            N_("The files of {name} have changed since this page was drawn. Reload the page.", name=found[1])
        )
    return path


def _folder(name: str) -> Path | None:
    """The subfolder of that name, if it holds a model, or the file; no link that leads elsewhere."""
    above = root()
    if above is None or not _NAME.fullmatch(name) or name != name.strip():
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


def _stamp(path: Path) -> str:
    """Changes when a file of the model is written, replaced, added or taken away."""
    digest = blake2b(digest_size=8)
    try:
        alone = path.is_file()  # bare weights: other files beside them are other models
        here = path.parent if alone else path
        names = [path.name, *(name for name in BESIDE if (here / name).exists())] if alone else os.listdir(path)
        for name in sorted(names):
            about = os.lstat(here / name) if not os.path.exists(here / name) else os.stat(here / name)
            digest.update(f"{name!r} {about.st_ino} {about.st_size} {about.st_mtime_ns}\n".encode())
    except OSError as error:  # files come and go just now: a stamp of its own, so that nothing is taken for settled
        digest.update(repr(error).encode())
    return digest.hexdigest()
