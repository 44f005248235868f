"""Which mapping counts for a file of weights: the one that is given, or else the one that lies beside it."""

import os
from pathlib import Path
from typing import NamedTuple

from vizformer.checkpoints.files.untrusted_folder import Folder, damaged, shown
from vizformer.checkpoints.tensors.role_mapping import MOST_BYTES, SUFFIX, RoleMapping, from_toml, read
from vizformer.errors import CheckpointError
from vizformer.messages import N_, Message


class ByHand(NamedTuple):
    """A mapping, what the report says of it, and whether nobody gave it: it lies beside the weights."""

    mapping: RoleMapping
    note: Message
    beside: bool = False


def mapping_for(folder: Folder, file: str, given: object = None) -> ByHand | None:
    """The mapping of a file of weights; None where nobody mapped its tensors.

    `given` is a mapping, a dict, or the path of a TOML file; an empty one leaves aside what lies beside the weights.
    """
    if given is None:
        name = f"{file}{SUFFIX}"
        if not folder.has(name):
            return None
        mapping = from_toml(_text(folder.file(name), name), name)
        return ByHand(mapping, _note(mapping, shown(name)), beside=True) if mapping.roles else None
    if isinstance(given, (str, os.PathLike)):
        path = Path(given)
        try:
            text = _text(path, path.name)
        except (OSError, ValueError) as error:
            raise CheckpointError(
                "There is no mapping {file}. Give the path of a TOML file, or a dict.", file=shown(str(given))
            ) from error
        mapping = from_toml(text, path.name)
        return ByHand(mapping, _note(mapping, shown(path.name))) if mapping.roles else None
    mapping = read(given)
    note = N_("mapped by hand: the roles of {n} tensors were given when the model was opened", n=len(mapping.roles))
    return ByHand(mapping, note) if mapping.roles else None


def _note(mapping: RoleMapping, where: str) -> Message:
    return N_("mapped by hand: {file} says the roles of {n} tensors", file=where, n=len(mapping.roles))


def _text(path: Path, name: str) -> str:
    with path.open("rb") as file:
        content = file.read(MOST_BYTES + 1)
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise damaged(name, error) from error
