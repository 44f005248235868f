"""Models that a reader puts up: kept in a private folder of the session that made them, gone when it ends.

What is unpacked, and what is refused: `vizformer.web.catalogue.safe_zip`; when it goes:
`vizformer.web.catalogue.session_folders`.
"""

import os
import secrets
import shutil
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import streamlit as st

from vizformer.errors import CheckpointError
from vizformer.web.catalogue import safe_zip, session_folders
from vizformer.web.catalogue.session_folders import stamp_of_files
from vizformer.web.inside_streamlit import get_script_run_ctx
from vizformer.web.link.model_ref import ModelRef

SWITCH = "VIZFORMER_UPLOADS"
LIMIT = "VIZFORMER_UPLOAD_LIMIT"
KEPT = 4  # models per session; the oldest makes room
_DEFAULT = 512 * 2**20  # bytes
_SPARE = 2**30  # bytes of the disk that stay free
_MINE = "vizformer.uploads"


@dataclass(frozen=True)
class Upload:
    title: str
    folder: Path


class Kept:
    """The uploads of one session, in a folder that only this account can enter.

    The folder goes with the object, or before it, when `watch` finds that the session has ended.
    """

    def __init__(self, session: str = "", watch: session_folders.Watch = session_folders.WATCH) -> None:
        self.root = session_folders.new_folder()
        self.uploads: dict[str, Upload] = {}
        self.remove = weakref.finalize(self, shutil.rmtree, self.root, ignore_errors=True)
        watch.add(session, self.remove)

    def add(self, files: Sequence[tuple[str, BinaryIO]], limit: int) -> str:
        """Unpacks what was put up; the name of the new upload.

        Raises:
            CheckpointError: files that are no model, or dangerous, or too large; nothing of them stays.
        """
        name = secrets.token_hex(8)
        place = self.root / name
        place.mkdir(mode=0o700)
        try:
            if shutil.disk_usage(place).free < limit + _SPARE:
                raise CheckpointError(
                    "The disk of this server is almost full. Ask whoever runs it, or use fewer or smaller uploads."
                )
            title = safe_zip.unpack(files, place, limit)
        except BaseException:
            shutil.rmtree(place, ignore_errors=True)
            raise
        for old in list(self.uploads)[: max(0, len(self.uploads) + 1 - KEPT)]:
            shutil.rmtree(self.uploads.pop(old).folder.parent, ignore_errors=True)
        self.uploads[name] = Upload(title, place / title)
        return name


def is_on() -> bool:
    """Whether this server takes uploads."""
    return os.environ.get(SWITCH, "").strip().lower() not in ("off", "no", "0", "false")


def limit() -> int:
    """How many bytes one upload may have, packed and unpacked."""
    given = os.environ.get(LIMIT, "").strip()
    return int(given) if given.isascii() and given.isdigit() else _DEFAULT


def add(files: Sequence[tuple[str, BinaryIO]]) -> ModelRef:
    """Takes files of this session's reader, each with its name there."""
    if not is_on():
        raise _off()
    kept: Kept | None = st.session_state.get(_MINE)
    if kept is None or not kept.remove.alive:
        kept = st.session_state[_MINE] = Kept(session_folders.current())
    return ModelRef("upload", kept.add(files, limit()))


def listed() -> tuple[ModelRef, ...]:
    """This session's uploads."""
    return tuple(ModelRef("upload", name) for name in _mine())


def locate(model: ModelRef) -> Path | None:
    """The folder of an upload of this session."""
    found = _mine().get(model.name)
    return found.folder if found is not None else None


def title(model: ModelRef) -> str:
    """The name of an upload in lists: its file name and the start of its random id, since many are called
    model.
    """
    found, start = _mine().get(model.name), model.name[:4]
    return f"{found.title} · {start}" if found is not None else f"upload · {start}"


def absent(model: ModelRef) -> CheckpointError:
    """Why there is no such upload."""
    if not is_on():
        return _off()
    return CheckpointError(
        "An upload lives only in the session that made it, and this is another one. Upload the files again on the "
        "page Model report."
    )


def stamp(path: Path) -> str:
    """Says which version of the files lies there."""
    return stamp_of_files(path)


def forget(file_ids: Sequence[str]) -> None:
    """Takes files out of the server's memory once they lie on the disk, or were refused."""
    context = get_script_run_ctx(suppress_warning=True)
    for file_id in file_ids if context is not None else ():
        context.uploaded_file_mgr.remove_file(context.session_id, file_id)  # type: ignore[union-attr]


def _mine() -> dict[str, Upload]:
    kept: Kept | None = st.session_state.get(_MINE)
    return kept.uploads if kept is not None and kept.remove.alive and is_on() else {}


def _off() -> CheckpointError:
    return CheckpointError("This server takes no uploads. Choose another model, or run VizFormer yourself.")
