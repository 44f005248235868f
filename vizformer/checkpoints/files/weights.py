"""Files of weights: safetensors (one file or shards), or PyTorch's own format without its code.

The files are mapped into memory and a tensor is read when it is asked for.
"""

import stat
import struct
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from vizformer.checkpoints.files import formats, pickles
from vizformer.checkpoints.files.untrusted_folder import MEGABYTE, MOST_SHOWN, Folder, damaged, listed, shown
from vizformer.errors import CheckpointError
from vizformer.messages import N_, Message

SAFETENSORS, TORCH = "model.safetensors", "pytorch_model.bin"
FLOATS = {"float64": torch.float64, "float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
_DTYPES = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "BOOL": "bool"}
_HEADER = 16 * MEGABYTE  # of safetensors: 100,000 tensors

MOST_DIRECTORY = 8 * MEGABYTE  # bytes: about 80,000 tensors
_END, _END_64, _PLACE_64 = struct.Struct("<4s4H2LH"), struct.Struct("<4sQ2H2L4Q"), struct.Struct("<4sLQL")


class ArchiveError(ValueError):
    """A zip that `torch.save` did not write, or a damaged one."""


class CompressedError(ArchiveError):
    """An archive that was packed again, smaller; says which part."""


class ScriptError(ArchiveError):
    """Raised for an archive of TorchScript."""


@dataclass(frozen=True)
class Stored:
    """A tensor as it lies in a file, or as it is made of what lies in several (then it is `copied`, never mapped)."""

    file: str
    shape: tuple[int, ...]
    dtype: str
    read: Callable[[], Tensor]
    copied: bool = False


@dataclass(frozen=True)
class Weights:
    """Every tensor of a checkpoint by name, unread, the files they lie in with their bytes, what there is to note."""

    tensors: dict[str, Stored]
    files: dict[str, int]
    notes: tuple[Message, ...] = ()

    @property
    def where(self) -> str:
        """The file to name in an error about all of them."""
        return next(iter(self.files), SAFETENSORS)

    @property
    def longest_side(self) -> int:
        """The largest dimension of all tensors; no table has more rows."""
        return max((side for stored in self.tensors.values() for side in stored.shape), default=0)


def open_weights(folder: Folder) -> Weights:
    """Finds the weights of a folder and reads what they are, not the numbers."""
    for name, opener in ((SAFETENSORS, open_safetensors), (TORCH, _open_torch)):
        if folder.has(name):
            path = folder.file(name)
            return Weights(opener(path, name), {name: path.stat().st_size})
        if folder.has(index := f"{name}.index.json"):
            return open_index(folder, index)
    raise CheckpointError(no_weights(folder))


def no_weights(folder: Folder) -> Message:
    """Says that there are none in a format that is read."""
    names = folder.names()
    if (known := formats.by_name(names)) is not None:
        return known
    if other := [n for n in names if n.endswith((".ot", ".pth", ".pt", ".ckpt"))]:
        return N_(
            "{folder} has its weights in {file}, which VizFormer does not read: it needs {wanted}. Open "
            "the model with the `transformers` library and write it again with save_pretrained.",
            folder=folder.name,
            file=other[0],
            wanted=f"{SAFETENSORS} / {TORCH}",
        )
    return lacks(folder, SAFETENSORS)


def lacks(folder: Folder, name: str) -> Message:
    return N_(
        "{folder} lacks {file}: a model folder needs config.json, model.safetensors and tokenizer.json.",
        folder=folder.name,
        file=name,
    )


def open_index(folder: Folder, index: str) -> Weights:
    """The tensors of the files that an index lists."""
    opener = open_safetensors if ".safetensors.index" in index else _open_torch
    places = folder.object(index).get("weight_map")
    if not isinstance(places, dict) or not places or not all(isinstance(file, str) for file in places.values()):
        raise CheckpointError(
            "{file} has no table `weight_map`, which names the file of each tensor. Copy it again from "
            "the model's source.",
            file=index,
        )
    shards: dict[str, dict[str, Stored]] = {}
    sizes: dict[str, int] = {}
    for name in sorted(set(places.values())):
        path = folder.file(name)
        shards[name], sizes[name] = opener(path, name), path.stat().st_size
    found = {name: shards[file][name] for name, file in places.items() if name in shards[file]}
    absent = [name for name in places if name not in found]
    unlisted = [(name, file) for file, tensors in shards.items() for name in tensors if name not in places]
    if absent or unlisted:
        problems = [N_("{name} is not in {file}", name=shown(n), file=shown(places[n])) for n in absent[:MOST_SHOWN]]
        problems += [
            N_("{name} in {file} is not listed", name=shown(n), file=shown(file)) for n, file in unlisted[:MOST_SHOWN]
        ]
        rest = len(absent) + len(unlisted) - len(problems)
        raise CheckpointError(
            "{file} does not fit the files it lists: {problems}. They belong to different models, or one is cut "
            "off: copy all of them again.",
            file=index,
            problems=listed(problems, more=rest),
        )
    return Weights(found, sizes)


def open_safetensors(path: Path, name: str) -> dict[str, Stored]:
    """The library checks that the header is no longer than the file and that the tensors fill the rest exactly."""
    with path.open("rb") as start:
        if (length := int.from_bytes(start.read(8), "little")) > _HEADER < path.stat().st_size:
            raise damaged(name, f"a header of {length:,} bytes; at most {_HEADER:,} are read")
    try:
        file: Any = safe_open(path, framework="pt")
        stored: dict[str, Stored] = {}
        for key in file.keys():  # noqa: SIM118 (not a dict)
            part = file.get_slice(key)
            kind = str(part.get_dtype())
            dtype = _DTYPES.get(kind, kind.lower())
            stored[key] = Stored(name, tuple(part.get_shape()), dtype, partial(_read, file, key, name))
        return stored
    except Exception as error:
        raise damaged(name, error) from error


def _read(file: Any, key: str, name: str) -> Tensor:
    try:
        tensor: Tensor = file.get_tensor(key)
        return tensor
    except Exception as error:
        raise damaged(name, error) from error


def _open_torch(path: Path, name: str) -> dict[str, Stored]:
    content = load_torch(path, name)
    if not isinstance(content, dict):
        raise not_only_tensors(content, name)
    return stored_tensors(content, path, name)


def load_torch(path: Path, name: str) -> Any:
    """`weights_only` reads tensors and plain containers; anything else in the pickle refuses the file.

    What it would build has been tried before: see `vizformer.checkpoints.files.pickles`.
    """
    if (other := formats.by_content(path, name)) is not None:
        raise CheckpointError(other)
    try:
        return torch.load(path, map_location="cpu", weights_only=True, mmap=_checked(path, name))
    except ScriptError as error:
        raise CheckpointError(
            "{file} is TorchScript, a program with its weights: it is not opened. Save its tensors alone: "
            "torch.save(torch.jit.load({file!r}).state_dict(), 'model.pt').",
            file=name,
        ) from error
    except CompressedError as error:
        raise CheckpointError(
            "{file} was packed again after torch.save ({part} is compressed), and VizFormer does not unpack "
            "it. Save it again: torch.save(torch.load({file!r}, weights_only=True), 'model.pt').",
            file=name,
            part=str(error),
        ) from error
    except pickles.ForeignError as error:
        raise CheckpointError(
            "{file} holds more than tensors ({name}), which could be a program: it is not opened. Where it was made, "
            "save the tensors alone: torch.save(model.state_dict(), 'model.pt'); or ask its author for model.safetensors.",
            file=name,
            name=shown(str(error)),
        ) from error
    except CheckpointError:
        raise
    except Exception as error:
        raise damaged(name, error) from error


def not_only_tensors(content: object, name: str) -> CheckpointError:
    """The error for a file whose content is not tensors by name; it says what the content is."""
    if not isinstance(content, dict):
        return CheckpointError(
            "{file} contains {value} instead of named tensors. Copy it again from the model's source.",
            file=name,
            value=type(content).__name__,
        )
    wrong = [
        N_("{name} is no tensor", name=shown(key)) for key, value in content.items() if not is_plain_tensor(key, value)
    ] or [N_("it is empty")]
    return CheckpointError(
        "{file} holds something else beside tensors with names: {problems}. Save the state dict alone.",
        file=name,
        problems=listed(wrong),
    )


def stored_tensors(content: dict[Any, Any], path: Path, name: str) -> dict[str, Stored]:
    """The tensors of a state dict that was read from `path`."""
    if not all(is_plain_tensor(key, value) for key, value in content.items()):
        raise not_only_tensors(content, name)
    if sum(value.numel() * value.element_size() for value in content.values()) > 2 * path.stat().st_size:
        raise damaged(name, "its tensors share memory so that they are many times as large as the file")
    return {
        key: Stored(name, tuple(value.shape), str(value.dtype).removeprefix("torch."), partial(_same, value))
        for key, value in content.items()
    }


def _same(tensor: Tensor) -> Tensor:
    return tensor


def is_plain_tensor(key: object, value: object) -> bool:
    """A named tensor of numbers in memory: not sparse, not quantised, not on a device that is not there."""
    if not isinstance(key, str) or type(value) not in (Tensor, torch.nn.Parameter) or not isinstance(value, Tensor):
        return False
    if value.layout != torch.strided or value.device.type != "cpu" or value.is_quantized:
        return False
    return value.untyped_storage().nbytes() >= value.numel() * value.element_size()  # not one number said to be many


def _checked(path: Path, name: str) -> bool:
    """Whether it is the zip that `torch.save` writes, else the bare pickles of before PyTorch 1.6; both were looked at."""
    with path.open("rb") as file:
        start = file.read(4)
        if start[:1] == b"\x80":
            pickles.check_legacy(start + file.read(pickles.LIMIT), path.stat().st_size)
            return False
    if start != b"PK\3\4":
        raise damaged(name, "neither a zip nor a pickle")
    check_archive(path)
    return True


def all_finite(tensor: Tensor) -> bool:
    """Whether there is neither NaN nor infinity: both show in the extremes, which need no second copy (20 x faster)."""
    return not tensor.numel() or all(bool(torch.isfinite(extreme)) for extreme in torch.aminmax(tensor.detach()))


def write_weights(tensors: Mapping[str, Tensor], path: Path, metadata: Mapping[str, str] | None = None) -> None:
    """A .safetensors file with the rights of any new file: the library's own are those of a temporary one, 0600."""
    save_file(dict(tensors), path, metadata=None if metadata is None else dict(metadata))
    new = path.with_name(f".{path.name}.rights")
    new.touch()
    path.chmod(stat.S_IMODE(new.stat().st_mode))
    new.unlink()


# The zip that `torch.save` writes, checked before PyTorch reads it: nothing compressed or twice, its pickle bounded.
#
# PyTorch and Python each have a reader of zips. What `torch.save` writes has one directory, directly before the end
# of the file, and both find the same there; archives that they could read in two ways are refused.
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
