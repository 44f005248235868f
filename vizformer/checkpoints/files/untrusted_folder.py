"""The files of a folder that somebody else made, read with suspicion: nothing outside it, nothing endless, no code."""

import json
import os
import re
import stat
from pathlib import Path
from typing import Any

from vizformer.errors import CheckpointError
from vizformer.messages import N_, Message

MEGABYTE = 2**20
TEXT_LIMIT = 64 * MEGABYTE  # of a tokenizer.json, which is tried in a process of its own before it is parsed
JSON_LIMIT = (
    16 * MEGABYTE
)  # of what is parsed here, where a text may take eight times as much; the largest in use have 10
MOST_VALUES = 2**20  # in one JSON file; each takes some 100 bytes of memory
MOST_SHOWN = 8  # problems in one error
_LFS = b"version https://git-lfs"
_PAGE = (b"<!doctype html", b"<html", b"<?xml")


class Folder:
    """The files directly in one folder, by name.

    A link that leads out of the folder is refused; a snapshot in the Hugging Face cache may link to the cache's own
    `blobs` beside it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        root = path.resolve()
        self.name = root.name
        self._inside = [root]
        for snapshot in (root, root.parent):
            if snapshot.parent.name == "snapshots":
                self._inside.append(snapshot.parent.parent / "blobs")

    def names(self) -> list[str]:
        return sorted(os.listdir(self.path))

    def has(self, name: str) -> bool:
        """Whether there is something of that name, be it readable or not."""
        return os.path.lexists(self.path / name)

    def file(self, name: str) -> Path:
        """The path of a regular file in this folder."""
        if not name or name in (".", "..") or set(name) & set("/\\\0"):
            raise CheckpointError(
                "{file} is not the name of a file in this folder. All files of a model must be in one "
                "folder: copy them there, and name them without a path.",
                file=shown(name),
            )
        path = self.path / name
        try:
            real = path.resolve(strict=True)
            kind = real.stat().st_mode
        except (OSError, RuntimeError, ValueError) as error:  # ValueError: a name no file system can write
            raise CheckpointError(
                "{folder} lacks {file}. Copy it from the model's source.", folder=self.name, file=shown(name)
            ) from error
        if not any(real.is_relative_to(place) for place in self._inside):
            raise CheckpointError(
                "{file} is a link that leads out of {folder}. Put the file itself there.",
                file=shown(name),
                folder=self.name,
            )
        if not stat.S_ISREG(kind):
            raise CheckpointError("{file} is not a file. Copy it again from the model's source.", file=shown(name))
        _refuse_stand_ins(real, name)
        return real

    def json(self, name: str) -> Any:
        text = self.text(name, JSON_LIMIT)
        if (most := text.count(",") + text.count("[") + text.count("{")) > MOST_VALUES:
            raise damaged(name, f"{most:,} values; at most {MOST_VALUES:,} are read")
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise _no_json(name, error) from error

    def object(self, name: str) -> dict[str, Any]:
        value = self.json(name)
        if not isinstance(value, dict):
            raise CheckpointError(
                "{file} contains {value} instead of a JSON object. Copy it again from the model's source.",
                file=name,
                value=shown(value),
            )
        return value

    def text(self, name: str, limit: int = TEXT_LIMIT) -> str:
        path = self.file(name)
        if (size := path.stat().st_size) > limit:
            raise CheckpointError(
                "{file} has {size:,} bytes; at most {limit:,} are read. It is not the file that its name says: copy "
                "it again from the model's source.",
                file=name,
                size=size,
                limit=limit,
            )
        try:
            return path.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise _no_json(name, error) from error
        except OSError as error:
            raise damaged(name, error) from error


def _no_json(name: str, error: Exception) -> CheckpointError:
    return CheckpointError(
        "{file} is not JSON ({reason}). Copy it again from the model's source.", file=name, reason=first_line(error)
    )


def _refuse_stand_ins(path: Path, name: str) -> None:
    try:
        with path.open("rb") as file:
            start = file.read(512).lstrip().lower()
    except OSError as error:
        raise damaged(name, error) from error
    if start.startswith(_LFS):
        raise CheckpointError(
            "{file} is a Git LFS pointer: a note of where the file lies, not the file. Run `git lfs pull` where it "
            "came from, then copy it again.",
            file=name,
        )
    if start.startswith(_PAGE):
        raise CheckpointError(
            "{file} is a web page, probably an error message saved under this name. Download it again and look "
            "whether the source asks you to sign in.",
            file=name,
        )


# As the system says it (error 12, ENOMEM), in whatever libraries make of that.
_NO_MEMORY = re.compile(r"cannot allocate memory|can't allocate memory|(?:error|code|errno) 12\b", re.IGNORECASE)


def damaged(file: str, reason: object) -> CheckpointError:
    """Says why a file cannot be read: it may not be, there is no memory for it, or else it is damaged."""
    if isinstance(reason, PermissionError):
        return CheckpointError(
            "The account that runs VizFormer may not read {file}. Allow it to, or copy the model.", file=file
        )
    if isinstance(reason, MemoryError) or (isinstance(reason, Exception) and _NO_MEMORY.search(str(reason))):
        refused = CheckpointError(
            "There is not enough memory for {file}: the file is larger than the memory that this process may "
            "still take. Raise its limit (ulimit -v, ulimit -d, or that of the job or container), or open a "
            "smaller model.",
            file=file,
        )
        refused.passing = True  # memory comes and goes
        return refused
    return CheckpointError(
        "{file} cannot be read ({reason}). It is damaged or incomplete: copy it again.",
        file=file,
        reason=first_line(reason),
    )


def first_line(reason: object) -> str:
    """What a library says went wrong, in one short line that every terminal can show; no path of the system's."""
    if isinstance(reason, OSError) and reason.strerror:
        reason = reason.strerror
    line = re.sub(r"[^ -~]", lambda found: ascii(found[0])[1:-1], str(reason).partition("\n")[0])
    return line if len(line) <= 200 else f"{line[:200]}..."


def shown(value: object) -> str:
    """A value out of somebody else's file, short and harmless to print."""
    try:  # (in ASCII: control characters and broken surrogates are escaped)
        text = json.dumps(value) if _is_small(value) else type(value).__name__
    except (TypeError, ValueError, RecursionError):
        text = type(value).__name__
    return text if len(text) <= 80 else f"{text[:77]}..."


def _is_small(value: object) -> bool:
    """Whether there are few values in it: in a pickle, a list may hold another one twice, and that again."""
    left, waiting = 1000, [value]
    while waiting and left:
        left -= 1
        inner = waiting.pop()
        if isinstance(inner, dict):
            waiting += [*inner.values()][:left]
        elif isinstance(inner, (list, tuple)):
            waiting += inner[:left]
    return not waiting


def listed(problems: list[Message], limit: int = MOST_SHOWN, more: int = 0) -> tuple[Message, ...]:
    """The first problems and how many more there are, `more` of which are not in the list, for one error about all."""
    rest = max(len(problems) - limit, 0) + more
    return (*problems[:limit], *([N_("and {n} more", n=rest)] if rest > 0 else []))
