"""Names of models from elsewhere, as links and lists have them: a place, a name there, assumptions.

    models/tiny-llama                        the server's folder (`vizformer --models DIR`)
    models/nano.pt;n_heads=4;norm_order=pre  bare weights: what they are assumed to be is part of the name
    hub/openai-community/gpt2@main           fetched from a hub
    upload/4f0c6ad2e9b10d37                  put up by a reader, in that session only
    path/9b1d4f0c6ad2                        opened by its path, by the person at this computer

A reader never learns where on the server a model lies, and what a link says leads to nothing but what is listed.
Caches know a model by its key, the name and @STAMP of its files as they are now: another model that takes its place is
never mistaken for it.  Names of other models (bundled, trained here) are their keys, and no business of this module.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from vizformer.errors import CheckpointError
from vizformer.messages import N_
from vizformer.web.catalogue import hub, local_paths, server_folder, uploads

_ANSWERS = "(?:;[a-z_]{1,20}=[A-Za-z0-9_.+-]{1,96}){0,16}"  # the longest answers are names of tensors
_STAMP = "@[0-9a-f]{16}"
_KEYS = {
    place: re.compile(rf"{place}/({name})({_ANSWERS})({_STAMP})?")
    for place, name in (
        ("models", server_folder.NAME),
        ("hub", hub.NAME),
        ("upload", uploads.NAME),
        ("path", local_paths.NAME),
    )
}


@dataclass(frozen=True)
class Name:
    """A name, or with its `stamp` a key, taken apart.

    Attributes:
        place: "models", "hub", "upload" or "path".
        name: what it is called there.
        answers: the assumptions as they stand there, each after a semicolon.
        stamp: of the files; empty for a name.
    """

    place: str
    name: str
    answers: str
    stamp: str

    @property
    def base(self) -> str:
        return f"{self.place}/{self.name}"


def parse(model: str) -> Name | None:
    """The parts of a name or key; None for models of other kinds."""
    place, slash, __ = model.partition("/")
    if not slash or place not in _KEYS:
        return None
    found = _KEYS[place].fullmatch(model)
    return None if found is None else Name(place, found[1], found[2], (found[3] or "").removeprefix("@"))


def is_name(model: str) -> bool:
    """Whether a name (or a key) is one of these kinds, be there such a model or not."""
    return parse(model) is not None


def base(model: str) -> str | None:
    """The name without assumptions; None for a key and for models of other kinds."""
    found = parse(model)
    return None if found is None or found.stamp else found.base


def answers(model: str) -> dict[str, str]:
    """The assumptions in a name or key."""
    found = parse(model)
    if found is None:
        return {}
    return {name: value for name, __, value in (item.partition("=") for item in found.answers.split(";")[1:])}


def under(model: str, assumptions: Mapping[str, object]) -> str:
    """The name of a model under other assumptions."""
    return "".join([base(model) or model, *(f";{name}={value}" for name, value in assumptions.items())])


def title(model: str) -> str:
    """What a model is called in lists: as its folder, its file or on its hub."""
    found = parse(model)
    if found is None:
        return model
    if found.place == "path":
        return local_paths.title(found.name)
    return uploads.title(found.name) if found.place == "upload" else found.name


def key(model: str) -> str:
    """What caches know the model as now; other models' names are their keys, and so is what is a key already."""
    found = parse(model)
    if found is None or found.stamp:
        return model
    path = _locate(found)
    return model if path is None else f"{model}@{_stamp(path)}"


def folder(model: str) -> Path | None:
    """Where a model lies; None for models of other kinds.

    Raises:
        CheckpointError: it is not there (for this session), or a key says that its files were others.
    """
    found = parse(model)
    if found is None:
        return None
    path = _locate(found)
    if path is None:
        raise _passing(_absent(found))
    if found.stamp and found.stamp != _stamp(path):
        raise _passing(
            CheckpointError(
                N_("The files of {name} have changed since this page was drawn. Reload the page.", name=title(model))
            )
        )
    return path


def _passing(error: CheckpointError) -> CheckpointError:
    """True of this session, or of this moment."""
    error.passing = True
    return error


def is_there(model: str) -> bool:
    """Whether this session may open a model of these kinds, and its files are there."""
    found = parse(model)
    return found is not None and _locate(found) is not None


def _locate(found: Name) -> Path | None:
    if found.place == "models":
        return server_folder.locate(found.name)
    if found.place == "path":
        return local_paths.locate(found.name)
    return hub.locate(found.name) if found.place == "hub" else uploads.locate(found.name)


def _absent(found: Name) -> CheckpointError:
    if found.place == "models":
        return CheckpointError(N_("The model {name} is no longer on this server. Choose another one.", name=found.name))
    if found.place == "path":
        return local_paths.absent(found.name)
    return hub.absent(found.name) if found.place == "hub" else uploads.absent()


def _stamp(path: Path) -> str:
    """Changes when a file of the model is written, replaced, added, taken away or allowed to be read."""
    digest = blake2b(digest_size=8)
    try:
        alone = path.is_file()  # bare weights: other files beside them are other models
        here = path.parent if alone else path
        beside = (name for name in server_folder.BESIDE if (here / name).exists())
        files = [path.name, *beside] if alone else os.listdir(path)
        for name in sorted(files):
            about = os.lstat(here / name) if not os.path.exists(here / name) else os.stat(here / name)
            digest.update(f"{name!r} {about.st_ino} {about.st_size} {about.st_mtime_ns} {about.st_ctime_ns}\n".encode())
    except OSError as error:  # files come and go just now: a stamp of its own, so that nothing is taken for settled
        digest.update(repr(error).encode())
    return digest.hexdigest()
