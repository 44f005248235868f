"""Models from the folder that whoever runs the server names (`vizformer --models DIR`): one per direct subfolder.

In links and lists such a model is called models/NAME: a reader never learns where on the server it lies, and what a
link says leads to nothing but a listed subfolder.  Caches know it as models/NAME@STAMP, with a stamp of the files as
they are now: another model that takes its place on disk is never mistaken for it.
"""

import os
import re
from hashlib import blake2b
from pathlib import Path

from vizformer.errors import CheckpointError
from vizformer.messages import N_

VARIABLE = "VIZFORMER_MODELS"
CONFIG = "config.json"
_START = "models/"
_NAME = re.compile(r"\w[\w.+ -]{0,79}")  # nothing that means something in a path or to a terminal; no hidden folder
_KEY = re.compile(rf"{_START}({_NAME.pattern})(?:@([0-9a-f]{{16}}))?")


def root() -> Path | None:
    """The folder with the models; None where none was named, or it is gone."""
    named = os.environ.get(VARIABLE, "").strip()
    return Path(named) if named and os.path.isdir(named) else None


def models() -> tuple[str, ...]:
    """The names of all models there, whether they open or not."""
    try:
        names = sorted(os.listdir(root() or ""))
    except OSError:
        return ()
    return tuple(f"{_START}{name}" for name in names if _folder(name) is not None)


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
    if found is None or found[2] is not None:
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
    if found[2] is not None and found[2] != _stamp(path):
        raise CheckpointError(
            N_("The files of {name} have changed since this page was drawn. Reload the page.", name=found[1])
        )
    return path


def _folder(name: str) -> Path | None:
    """The subfolder of that name, if it holds a config.json and is no link that leads elsewhere."""
    above = root()
    if above is None or not _NAME.fullmatch(name) or name != name.strip():
        return None
    try:
        real = (above / name).resolve(strict=True)
        inside = above.resolve() in real.parents
    except (OSError, RuntimeError, ValueError):
        return None
    return real if inside and os.path.isfile(real / CONFIG) else None


def _stamp(path: Path) -> str:
    """Changes when a file of the model is written, replaced, added or taken away."""
    digest = blake2b(digest_size=8)
    try:
        for name in sorted(os.listdir(path)):
            about = os.lstat(path / name) if not os.path.exists(path / name) else os.stat(path / name)
            digest.update(f"{name!r} {about.st_ino} {about.st_size} {about.st_mtime_ns}\n".encode())
    except OSError as error:  # files come and go just now: a stamp of its own, so that nothing is taken for settled
        digest.update(repr(error).encode())
    return digest.hexdigest()
