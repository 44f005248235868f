"""Archives that hold objects of their author's classes, and TorchScript: built with inert stand-ins, nothing is run.

A pickle names the class of an object and then gives its fields.  Every class that PyTorch's tensors do not need becomes
`StandIn` here, a dictionary of these fields that ignores whatever it is called with.  What the pickle does has been gone
through before (`pickles`); the functions that build tensors are called with the arguments that `torch.save` writes.

Source: pickle.py of CPython; torch/serialization.py; TorchScript's archives are those of torch/csrc/jit/serialization.
"""

import collections
import importlib
import io
import pickle
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from vizformer.checkpoints.files.pickle_rules import CALLS, NAMED, STORAGE_NAME, PickleError, full_name

_LOCAL_HEADER = 30  # bytes before the name of an entry
_DEEPEST, _MOST_MEMBERS, _LONGEST_NAME = 24, 2**17, 200  # modules inside each other; of all together; characters
_TYPES = {
    "Double": torch.float64,
    "Float": torch.float32,
    "Half": torch.float16,
    "BFloat16": torch.bfloat16,
    "Long": torch.int64,
    "Int": torch.int32,
    "Short": torch.int16,
    "Char": torch.int8,
    "Byte": torch.uint8,
    "Untyped": torch.uint8,
    "Bool": torch.bool,
    "ComplexDouble": torch.complex128,
    "ComplexFloat": torch.complex64,
}


class StandIn(dict[Any, Any]):
    """What an object of an unknown class was said to hold; equal to itself alone."""

    __hash__ = object.__hash__  # type: ignore[assignment]
    __eq__ = object.__eq__
    __ne__ = object.__ne__
    __repr__ = object.__repr__

    def __init__(self, *ignored: object) -> None:
        super().__init__()

    def __setstate__(self, state: object) -> None:
        """Fields alone, or with those of slots behind them."""
        for fields in state if type(state) is tuple and len(state) == 2 else (state,):
            if isinstance(fields, dict):
                dict.update(self, fields)

    def append(self, item: object) -> None:
        """Lists of an own class are left out."""

    def extend(self, items: object) -> None:
        """The same."""


def read(path: Path) -> Any:
    """What an archive holds that `archives.check_archive` has let through; tensors stay mapped to the file.

    Raises:
        PickleError: numbers that lie where the file has none, or of a type or byte order that is not read.
    """
    size = path.stat().st_size
    with zipfile.ZipFile(path) as archive:
        entries = {entry.filename: entry for entry in archive.infolist()}
        main = next(name for name in entries if name.endswith("/data.pkl") and name.count("/") == 1)
        top = main.removesuffix("data.pkl")
        if f"{top}byteorder" in entries and archive.read(f"{top}byteorder") != b"little":
            raise PickleError("its numbers are in another byte order")
        content = archive.read(main)
    whole = torch.UntypedStorage.from_file(str(path), False, size)
    with path.open("rb") as file:

        def stored(key: str, dtype: torch.dtype, n: int) -> torch.TypedStorage:
            entry = entries.get(f"{top}data/{key}")
            if entry is None or entry.file_size < n * dtype.itemsize:
                raise PickleError(f"the numbers {key[:20]!r} are not all there")
            file.seek(entry.header_offset)
            header = file.read(_LOCAL_HEADER)
            start = (
                entry.header_offset + _LOCAL_HEADER + sum(int.from_bytes(header[i : i + 2], "little") for i in (26, 28))
            )
            if header[:4] != b"PK\3\4" or start % dtype.itemsize or start + entry.file_size > size:
                raise PickleError(f"the numbers {key[:20]!r} lie where the file has none")
            numbers = whole[start : start + n * dtype.itemsize]
            return torch.TypedStorage(wrap_storage=numbers, dtype=dtype, _internal=True)  # type: ignore[no-untyped-call]

        return _Unpickler(content, stored).load()


class _Unpickler(pickle.Unpickler):
    """Builds what the rules know, and stand-ins for everything else."""

    def __init__(self, content: bytes, stored: Any) -> None:
        # (find_class does)
        super().__init__(io.BytesIO(content), encoding="utf-8", errors="replace", fix_imports=False)
        self.stored = stored

    def find_class(self, module: str, name: str) -> Any:
        full = full_name(module, name)
        if (kind := STORAGE_NAME.fullmatch(full)) is not None:
            return _TYPES.get(kind[1])
        if full not in CALLS and full not in NAMED:
            found = getattr(torch, name, None) if module == "torch" else None
            return found if isinstance(found, torch.dtype) else StandIn
        place, __, attribute = full.rpartition(".")
        return getattr(importlib.import_module(place), attribute)

    def persistent_load(self, said: Any) -> torch.TypedStorage:
        __, dtype, key, __, n = said[:5]
        if dtype is None:
            raise PickleError("numbers of a type that is not read beside objects of other classes")
        found: torch.TypedStorage = self.stored(key, dtype, n)
        return found


def is_module(value: object) -> bool:
    """Whether a stand-in is one of an `nn.Module`."""
    return isinstance(value, StandIn) and isinstance(value.get("_modules"), dict)


def tensors_of(module: StandIn) -> dict[str, Tensor]:
    """The state dict of a module that was saved as a whole, or as TorchScript: its tensors by their names.

    Raises:
        PickleError: modules inside each other without end.
    """
    found: dict[str, Tensor] = {}
    for prefix, part in _modules(module):
        left_out = part.get("_non_persistent_buffers_set")
        for name, value in _members(part).items():
            if isinstance(value, Tensor) and not (isinstance(left_out, set) and name in left_out):
                found[f"{prefix}{name}"] = value
    return found


def fields_of(module: StandIn) -> dict[str, Mapping[str, Any]]:
    """What a module, those inside it and the objects that they hold (a config) say in plain values: name -> fields.

    Raises:
        PickleError: as `tensors_of`.
    """
    found: dict[str, Mapping[str, Any]] = {}
    seen = set[int]()
    for prefix, part in _modules(module):
        others = ((f"{prefix}{name}", value) for name, value in part.items() if isinstance(value, StandIn))
        for name, said in ((prefix.removesuffix(".") or "model", part), *others):
            plain = {field: value for field, value in said.items() if type(value) in (str, int, float, bool)}
            if plain.keys() - {"training"} and id(said) not in seen:
                found[name] = plain
            seen.add(id(said))
    return found


def _modules(module: StandIn) -> Iterator[tuple[str, StandIn]]:
    """All modules with the beginnings of their members' names, each before those inside it."""
    waiting, n = collections.deque([("", module, 0)]), 0
    while waiting:
        prefix, part, depth = waiting.popleft()
        members = _members(part)
        n += 1 + len(part) + len(members)
        if depth > _DEEPEST or n > _MOST_MEMBERS or any(len(name) > _LONGEST_NAME for name in members):
            raise PickleError("modules inside each other without end, or with names without end")
        yield prefix, part
        for name, value in members.items():
            if isinstance(value, StandIn):
                waiting.append((f"{prefix}{name}.", value, depth + 1))


def _members(part: StandIn) -> dict[str, object]:
    """Of an `nn.Module` its parameters, buffers and modules; of TorchScript's all fields."""
    kept = [part.get(name) for name in ("_parameters", "_buffers", "_modules")]
    places = kept if isinstance(kept[2], dict) else [part]
    return {
        name: value
        for fields in places
        if isinstance(fields, dict)
        for name, value in fields.items()
        if isinstance(name, str)
    }
