"""The version of a model's files, as a short text: it changes when one of them does."""

import os
from collections.abc import Collection
from hashlib import blake2b
from pathlib import Path


def stamp_of_files(path: Path, beside: Collection[str] = ()) -> str:
    """Changes when a file of the model is written, replaced, added or taken away.

    Args:
        path: of a model's folder, or of one file of weights.
        beside: names of files that are read with a single file of weights: other files there are other models.
    """
    digest = blake2b(digest_size=8)
    try:
        alone = path.is_file()
        here = path.parent if alone else path
        files = [path.name, *(name for name in beside if (here / name).exists())] if alone else os.listdir(path)
        for name in sorted(files):
            about = os.lstat(here / name) if not os.path.exists(here / name) else os.stat(here / name)
            digest.update(f"{name!r} {about.st_ino} {about.st_size} {about.st_mtime_ns}\n".encode())
    except OSError as error:  # files come and go just now: a stamp of its own, so that nothing is taken for settled
        digest.update(repr(error).encode())
    return digest.hexdigest()
