"""The zip that `torch.save` writes, checked before PyTorch reads it: nothing compressed or twice, its pickle bounded.

PyTorch and Python each have a reader of zips.  What `torch.save` writes has one directory, directly before the end of
the file, and both find the same there; archives that they could read in two ways are refused.
"""

import struct
import zipfile
from pathlib import Path
from typing import BinaryIO

from vizformer.checkpoints.files import pickles
from vizformer.checkpoints.files.untrusted_folder import MEGABYTE, shown

MOST_DIRECTORY = 8 * MEGABYTE  # bytes: about 80,000 tensors
_END, _END_64, _PLACE_64 = struct.Struct("<4s4H2LH"), struct.Struct("<4sQ2H2L4Q"), struct.Struct("<4sLQL")


class ArchiveError(ValueError):
    """A zip that `torch.save` did not write, or a damaged one."""


class CompressedError(ArchiveError):
    """An archive that was packed again, smaller; says which part."""


class ScriptError(ArchiveError):
    """Raised for an archive of TorchScript."""


def check_archive(path: Path) -> None:
    """Looks at the directory of the archive, and has its pickle tried.

    Raises:
        ArchiveError: an archive that is not as `torch.save` writes it; CompressedError, ScriptError: one that was packed
            again, one of TorchScript.
        PickleError: as `pickles.check_pickle`.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        _check_directory(file, size)
        with zipfile.ZipFile(file) as archive:  # (whatever it raises, the caller calls the file damaged)
            _check_entries(archive, size)


def _check_directory(file: BinaryIO, size: int) -> None:
    """The directory must end where its end is noted, and that at the end of the file; sizes are looked at first."""
    file.seek(max(0, size - _END.size))
    end = file.read(_END.size)
    if len(end) < _END.size or end[:4] != b"PK\5\6" or end[-2:] != b"\0\0":
        raise ArchiveError("the list of its parts is not at its end")
    *__, length, offset, ___ = _END.unpack(end)
    stop = size - _END.size
    file.seek(max(0, stop - _PLACE_64.size))
    place = file.read(_PLACE_64.size)
    if len(place) == _PLACE_64.size and place[:4] == b"PK\6\7":
        stop -= _PLACE_64.size + _END_64.size
        file.seek(max(0, stop))
        end_64 = file.read(_END_64.size)
        if stop < 0 or end_64[:4] != b"PK\6\6" or _PLACE_64.unpack(place)[2] != stop:
            raise ArchiveError("the list of its parts is not at its end")
        length, offset = _END_64.unpack(end_64)[-2:]
    if length > MOST_DIRECTORY:
        raise ArchiveError(f"{length:,} bytes of names of its parts")
    if offset + length != stop:
        raise ArchiveError("the list of its parts is not at its end")


def _check_entries(archive: zipfile.ZipFile, size: int) -> None:
    names: set[str] = set()
    pickle = None
    if any(entry.filename.endswith("/constants.pkl") for entry in archive.infolist()):
        raise ScriptError("it is TorchScript")
    for entry in archive.infolist():
        name = entry.filename
        if entry.compress_type != zipfile.ZIP_STORED and not entry.flag_bits & 1:
            raise CompressedError(shown(name))
        beside = "/data/" not in name  # the numbers themselves are in NAME/data/0, 1, ...
        if (
            entry.compress_size != entry.file_size
            or entry.flag_bits & 1
            or (beside and entry.file_size > pickles.LIMIT)
        ):
            raise ArchiveError(f"{shown(name)} is encrypted or too large")
        if name.lower() in names:  # PyTorch looks for names without regard to case
            raise ArchiveError(f"{shown(name)} is there twice")
        names.add(name.lower())
        if name.endswith("/data.pkl") and name.count("/") == 1:
            pickle = entry
    if pickle is None:
        raise ArchiveError("it has no data.pkl")
    pickles.check_pickle(archive.read(pickle), size)
