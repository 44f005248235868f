"""Mappings of tensors to roles as files beside the weights: who may put one there, and how it is written.

A file beside the weights changes what everybody sees of them.  So only the person at this computer writes into the
server's folder or beside a path, and a reader beside her own uploads; others download the file.
"""

import contextlib
import os
import secrets
from pathlib import Path

from vizformer.errors import CheckpointError
from vizformer.web.catalogue import local_paths, server_folder, sources
from vizformer.web.link.model_ref import ModelRef

SUFFIX = server_folder.MAPPING


def may_write(model: ModelRef) -> bool:
    """Whether this session may put a file beside the weights of a model, and can."""
    if model.source not in ("models", "path", "upload") or (model.source != "upload" and not local_paths.allowed()):
        return False
    place = _folder(model)
    return place is not None and os.access(place, os.W_OK)


def write(model: ModelRef, name: str, text: str) -> None:
    """Writes all of the file or nothing; one that was there is replaced."""
    place = _folder(model)
    if place is None or not may_write(model) or not name.endswith(SUFFIX) or Path(name).name != name:
        raise CheckpointError("No file can be put beside these weights. Take the mapping along and put it there.")
    begun = place / f".mapping-{secrets.token_hex(8)}"
    try:
        with begun.open("x", encoding="utf-8") as out:
            out.write(text)
        begun.replace(place / name)
    except OSError as error:
        with contextlib.suppress(OSError):
            begun.unlink()
        raise CheckpointError(
            "No file can be put beside these weights. Take the mapping along and put it there."
        ) from error


def _folder(model: ModelRef) -> Path | None:
    path = sources.locate(model)
    return None if path is None else path if path.is_dir() else path.parent
