"""Files that somebody put up, written into a folder: several files, or one zip with them.

Neither the names nor the sizes in a zip are trusted.  Only plain files are written, all into one folder, under names
without meaning for a file system, and never more bytes than the limit.
"""

import re
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import IO, BinaryIO

from vizformer.checkpoints.files import formats
from vizformer.errors import CheckpointError

SUFFIXES = (".json", ".txt", ".safetensors", ".bin", ".pt", ".pth", ".ckpt", ".model", ".spm", ".toml")
_WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".ckpt")
MOST = 200  # files
_FILE = re.compile(r"\w[\w.+ -]{0,119}")
_TITLE = re.compile(r"\w[\w.+ -]{0,59}")
# What hubs and file managers put beside a model; nothing of it is read, or written here.
_BESIDE = re.compile(r"readme(\.md)?|licen[cs]e(\.md|\.txt)?|notice|\.gitattributes|\.gitignore|\.ds_store|thumbs\.db")
_PIECE = 2**20  # bytes written at a time
_DIRECTORY = 4 * 2**20  # bytes of a zip's directory; 200 entries need a hundredth
_ENCRYPTED = 0x1 | 0x40 | 0x2000  # flags: of the entry, strongly, its name too
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


def unpack(files: Sequence[tuple[str, BinaryIO]], place: Path, limit: int) -> str:
    """Writes the files of one model, at most `limit` bytes, into a new folder in `place`, and returns that folder's name.

    Raises:
        CheckpointError: one of them is refused.
    """
    if not files:
        raise CheckpointError("No file was chosen. Choose the files of a model, or one zip with them.")
    if sum(_size(content) for __, content in files) > limit:
        raise _too_large(_shown(files[0][0]), limit)
    zips = [name for name, __ in files if name.lower().endswith(".zip")]
    if zips and len(files) > 1:
        raise CheckpointError(
            "{file} came together with other files. Upload one zip alone, or the files without a zip.",
            file=_shown(zips[0]),
        )
    if zips:
        return _unzip(files[0][0], files[0][1], place, limit)
    wanted = [(name, content) for name, content in files if not _BESIDE.fullmatch(name.lower())]
    contents = dict(wanted)
    _check_names([name for name, __ in wanted], lambda name: _begins(contents[name]))
    title = _title(wanted[0][0].rsplit(".", 1)[0] if len(wanted) == 1 else "model")
    (place / title).mkdir(mode=0o700)
    budget = _Budget(limit)
    for name, content in wanted:
        content.seek(0)
        _write(place / title / name, content, budget)
    return title


def _unzip(name: str, content: BinaryIO, place: Path, limit: int) -> str:
    try:
        with zipfile.ZipFile(_Careful(content)) as archive:
            return _unzip_entries(name, archive, place, limit)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError, OSError, RuntimeError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # of our disk
            raise
        raise CheckpointError(
            "{file} cannot be unpacked: it is no zip file, or damaged. Make it again, or upload the files themselves.",
            file=_shown(name),
        ) from error


def _unzip_entries(name: str, archive: zipfile.ZipFile, place: Path, limit: int) -> str:
    entries = archive.infolist()
    if len(entries) > MOST:
        raise _too_many()
    for entry in entries:
        _check_entry(entry)
    entries = [entry for entry in entries if not entry.orig_filename.startswith("__MACOSX/")]
    top = _common_folder(entries)
    inner = {entry.orig_filename.removeprefix(f"{top}/" if top else ""): entry for entry in entries}
    inner = {file: entry for file, entry in inner.items() if file and not _BESIDE.fullmatch(file.lower())}
    _check_names(inner, lambda file: archive.open(inner[file]).read(formats.BEGINNING))
    if len(inner) != len({entry.orig_filename for entry in inner.values()}) or _twice(entries):
        raise _same_name(_shown(_twice(entries) or name))
    if sum(entry.file_size for entry in inner.values()) > limit:
        raise _too_large(_shown(name), limit)
    title = _title(top or name.rsplit(".", 1)[0])
    (place / title).mkdir(mode=0o700)
    budget = _Budget(limit)
    for file, entry in inner.items():
        with archive.open(entry) as packed:
            written = _write(place / title / file, packed, budget)
        if written != entry.file_size:
            raise zipfile.BadZipFile(file)
    return title


def _check_entry(entry: zipfile.ZipInfo) -> None:
    """Refuses what is not an ordinary file, or a folder, with an ordinary place."""
    name = entry.orig_filename  # `filename` is already tidied up
    parts = name.rstrip("/").split("/")
    kind = stat.S_IFMT(entry.external_attr >> 16)
    if name.startswith("/") or "\\" in name or "\0" in name or ".." in parts or re.match("[A-Za-z]:", name):
        raise CheckpointError(
            "The zip names {file}, a place outside itself. Nothing was unpacked. Pack the files again, side by side.",
            file=_shown(name),
        )
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR) or (kind == stat.S_IFDIR) > name.endswith("/"):
        raise CheckpointError(
            "{file} in the zip is a link or a device, not a file. Pack the files themselves (zip without --symlinks).",
            file=_shown(name),
        )
    if entry.flag_bits & _ENCRYPTED:
        raise CheckpointError(
            "{file} in the zip is encrypted. Pack the files again without a password.", file=_shown(name)
        )
    if entry.compress_type not in _METHODS:
        raise CheckpointError(
            "{file} in the zip is packed in a way that is not read here. Pack the files again with the usual "
            "method, deflate.",
            file=_shown(name),
        )


def _common_folder(entries: Iterable[zipfile.ZipInfo]) -> str:
    """The one folder that everything lies in, empty where the files lie at the top."""
    files = [entry.orig_filename for entry in entries if not entry.orig_filename.endswith("/")]
    folders = [entry.orig_filename.rstrip("/") for entry in entries if entry.orig_filename.endswith("/")]
    tops = {file.partition("/")[0] if "/" in file else "" for file in files}
    top = tops.pop() if len(tops) == 1 else ""
    deep = [name for name in (*files, *folders) if "/" in (name.removeprefix(f"{top}/") if top else name)]
    if deep or any(folder != top for folder in folders):
        raise CheckpointError(
            "{file} in the zip lies in a folder of its own. The files of a model lie side by side: pack one folder "
            "without subfolders.",
            file=_shown((deep or [f for f in folders if f != top])[0]),
        )
    return top


def _begins(content: BinaryIO) -> bytes:
    content.seek(0)
    return content.read(formats.BEGINNING)


def _check_names(names: Iterable[str], begins: Callable[[str], bytes]) -> None:
    """Refuses names that are none, and files of other kinds; `begins` gives the first bytes of one with an unusual name."""
    names = list(names)
    if not names:
        raise CheckpointError("There is no file of a model in it. Choose config.json, the weights, the tokenizer.")
    if len(names) > MOST:
        raise _too_many()
    for name in names:
        if not _FILE.fullmatch(name) or not name.isprintable() or name != name.strip():
            raise CheckpointError(
                "{file} is no name for a file here: letters, digits and . _ - + only. Rename it.", file=_shown(name)
            )
        if not name.lower().endswith(SUFFIXES) and not formats.written_by(begins(name)):
            _refuse_others([name] if not any(n.lower().endswith(_WEIGHTS) for n in names) else [])
            raise CheckpointError(
                "{file} is no file of a model. These are read: {suffixes}. Leave it out.",
                file=_shown(name),
                suffixes=" ".join(SUFFIXES),
            )
    lower = [name.lower() for name in names]  # file systems differ in whether case counts
    for name in names:
        if lower.count(name.lower()) > 1:
            raise _same_name(_shown(name))


def _refuse_others(names: Iterable[str]) -> None:
    """Says what weights of other programs are."""
    if (other := formats.by_name(names)) is not None:
        raise CheckpointError(other)


def _twice(entries: Iterable[zipfile.ZipInfo]) -> str:
    seen: set[str] = set()
    for entry in entries:
        if entry.orig_filename in seen:
            return entry.orig_filename
        seen.add(entry.orig_filename)
    return ""


class _Budget:
    """The number of bytes that may still be written."""

    def __init__(self, limit: int) -> None:
        self.limit = self.left = limit


def _write(path: Path, content: IO[bytes], budget: _Budget) -> int:
    """Copies a file piece by piece; returns the number of bytes."""
    written = 0
    with path.open("xb") as file:
        while piece := content.read(_PIECE):
            budget.left -= len(piece)
            if budget.left < 0:
                raise _too_large(_shown(path.name), budget.limit)
            file.write(piece)
            written += len(piece)
    return written


class _Careful:
    """A file of which no one reads much at a time: a zip says itself how large its directory is."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def read(self, n: int = -1) -> bytes:
        if n > _DIRECTORY:
            raise zipfile.BadZipFile("a directory that large")
        return self._file.read(n if n >= 0 else _DIRECTORY)

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def seekable(self) -> bool:
        return True


def _size(content: BinaryIO) -> int:
    size = content.seek(0, 2)
    content.seek(0)
    return size


def _title(name: str) -> str:
    return name if _TITLE.fullmatch(name) and name.isprintable() and name == name.strip() else "model"


def _shown(name: str) -> str:
    short = name if len(name) <= 80 else f"{name[:77]}..."
    return short if short.isprintable() else ascii(short)


def _same_name(name: str) -> CheckpointError:
    return CheckpointError("{file} is there twice. Give each file a name of its own.", file=name)


def _too_many() -> CheckpointError:
    return CheckpointError(
        "There are more than {n} files. A model has fewer: leave out what does not belong to it.", n=MOST
    )


def _too_large(name: str, limit: int) -> CheckpointError:
    return CheckpointError(
        "{file} has more than {limit} MiB, which is all that an upload may have here, also unpacked. Take a smaller "
        "model, or start VizFormer yourself with vizformer --models DIR.",
        file=name,
        limit=f"{limit / 2**20:,.0f}",
    )
