"""The header of a GGUF file: what it says of itself, and where its tensors lie.  Read with suspicion.

    "GGUF"  version  number of tensors  number of fields
    fields: key, kind, value                  tensors: name, sides, kind, where
    (up to the alignment) the tensors' bytes

Every length and every count is held against what is left of the file before anything of that size is made.

Source: the specification of GGUF (ggml, docs/gguf.md), versions 2 and 3, little-endian.
"""

import math
import mmap
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from vizformer.checkpoints.files.untrusted_folder import damaged, shown
from vizformer.errors import CheckpointError

MAGIC = b"GGUF"
VERSIONS = (2, 3)
MOST_TENSORS, MOST_FIELDS = 20_000, 4_096
MOST_ENTRIES = 2**20  # of a list: the largest vocabularies have a quarter of it
MOST_IN_LISTS = 4 * MOST_ENTRIES  # of all lists together, as each entry becomes an object
LONGEST_NAME = 256  # bytes, of a tensor or a field
LONGEST_TEXT = 2**20  # bytes, of a value
MOST_HEADER = 2**27  # bytes before the tensors
MOST_SIDES, LONGEST_SIDE = 4, 2**31
_ALIGNMENT = 32
_NUMBERS = {  # kind of a value -> how `struct` writes it
    0: "B",
    1: "b",
    2: "H",
    3: "h",
    4: "I",
    5: "i",
    6: "f",
    7: "?",
    10: "Q",
    11: "q",
    12: "d",
}
_TEXT, _LIST = 8, 9


@dataclass(frozen=True)
class Kind:
    """How the numbers of a tensor are written."""

    name: str  # as llama.cpp calls it
    block: int  # how many numbers are written together
    size: int  # bytes of such a block


# Source: ggml.h, ggml-common.h (the sizes of its blocks).
KINDS: Mapping[int, Kind] = {
    0: Kind("F32", 1, 4),
    1: Kind("F16", 1, 2),
    2: Kind("Q4_0", 32, 18),
    3: Kind("Q4_1", 32, 20),
    6: Kind("Q5_0", 32, 22),
    7: Kind("Q5_1", 32, 24),
    8: Kind("Q8_0", 32, 34),
    10: Kind("Q2_K", 256, 84),
    11: Kind("Q3_K", 256, 110),
    12: Kind("Q4_K", 256, 144),
    13: Kind("Q5_K", 256, 176),
    14: Kind("Q6_K", 256, 210),
    28: Kind("F64", 1, 8),
    30: Kind("BF16", 1, 2),
}


@dataclass(frozen=True)
class Place:
    """A tensor of the file: what it is and where its bytes are."""

    name: str
    shape: tuple[int, ...]
    kind: Kind
    start: int
    n_bytes: int


@dataclass(frozen=True)
class Header:
    """What a file says: its fields, and its tensors by name."""

    fields: Mapping[str, Any]
    tensors: Mapping[str, Place]
    n_bytes: int


def read(path: Path, name: str) -> Header:
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return _Reading(content, name).header()
    except (OSError, ValueError) as error:
        raise damaged(name, error) from error


class _Reading:
    """A place in a file, which moves on; what would go beyond its end is refused."""

    def __init__(self, content: mmap.mmap, name: str) -> None:
        self.content, self.name, self.at, self.entries = content, name, 0, 0
        self.end = len(content)

    def header(self) -> Header:
        if self.bytes(4) != MAGIC:
            raise damaged(self.name, "it does not begin as a GGUF file")
        version = self.number("I")
        if version not in VERSIONS:
            raise CheckpointError(
                "{file} is a GGUF file of version {version}; read are versions {versions}, little-endian. Convert the "
                "model again with a recent llama.cpp.",
                file=shown(self.name),
                version=version,
                versions=" / ".join(map(str, VERSIONS)),
            )
        n_tensors, n_fields = self.count(MOST_TENSORS, 24), self.count(MOST_FIELDS, 13)
        fields: dict[str, Any] = {}
        for __ in range(n_fields):
            key = self.text(LONGEST_NAME)
            if key in fields:
                raise damaged(self.name, f"the field {shown(key)} twice")
            fields[key] = self.value(self.number("I"))
        found = [self.tensor() for __ in range(n_tensors)]
        alignment = fields.get("general.alignment", _ALIGNMENT)
        if type(alignment) is not int or not 8 <= alignment <= 2**16 or alignment & (alignment - 1):
            raise damaged(self.name, "its alignment is no power of two")
        start = -(-self.at // alignment) * alignment
        return Header(fields, self.placed(found, start, alignment), self.end)

    def placed(
        self, found: list[tuple[str, tuple[int, ...], Kind, int]], start: int, alignment: int
    ) -> dict[str, Place]:
        """The tensors where they lie: within the file, one after the other, none within another one."""
        places: dict[str, Place] = {}
        free = 0  # from where on no tensor lies yet, counted from `start`
        for name, shape, kind, offset in sorted(found, key=lambda one: one[3]):
            n = math.prod(shape)
            if shape[-1] % kind.block:
                raise damaged(self.name, f"the rows of {shown(name)} are no whole blocks of {kind.block}")
            n_bytes = n // kind.block * kind.size
            if offset % alignment or start + offset + n_bytes > self.end:
                raise damaged(self.name, f"{shown(name)} lies where the file is not")
            if name in places:
                raise damaged(self.name, f"the tensor {shown(name)} twice")
            if offset < free:
                raise damaged(self.name, f"{shown(name)} begins within another tensor")
            free = offset + n_bytes
            places[name] = Place(name, shape, kind, start + offset, n_bytes)
        return {name: places[name] for name, *__ in found}

    def bytes(self, n: int) -> bytes:
        if n > self.end - self.at or self.at + n > MOST_HEADER:
            raise damaged(self.name, "it ends within its header, or that is longer than it may be")
        found = self.content[self.at : self.at + n]
        self.at += n
        return found

    def number(self, code: str) -> Any:
        return struct.unpack(f"<{code}", self.bytes(struct.calcsize(f"<{code}")))[0]

    def count(self, most: int, least_bytes: int) -> int:
        """How many things of so many bytes at least follow."""
        n = int(self.number("Q"))
        if n > most or n * least_bytes > self.end - self.at:
            raise damaged(self.name, f"{n:,} entries; at most {most:,} are read, and no more than it has room for")
        return n

    def text(self, longest: int) -> str:
        n = int(self.number("Q"))
        if n > longest:
            raise damaged(self.name, f"a text of {n:,} bytes; at most {longest:,} are read")
        return self.bytes(n).decode("utf-8", errors="replace")

    def value(self, kind: int) -> Any:
        if kind == _TEXT:
            return self.text(LONGEST_TEXT)
        if kind == _LIST:
            return self.list()
        if kind not in _NUMBERS:
            raise damaged(self.name, f"a value of the unknown kind {kind}")
        return self.number(_NUMBERS[kind])

    def list(self) -> Any:
        kind = self.number("I")
        if kind == _TEXT:
            n = self.entries_of_list(8)
            return [self.text(LONGEST_TEXT) for __ in range(n)]
        if kind not in _NUMBERS:
            raise damaged(self.name, f"a list of values of the unknown kind {kind}")
        code = _NUMBERS[kind]
        size = struct.calcsize(f"<{code}")
        n = self.entries_of_list(size)
        return np.frombuffer(self.bytes(n * size), np.dtype(f"<{code}")).tolist()

    def entries_of_list(self, least_bytes: int) -> int:
        """How many entries of so many bytes at least follow; all lists share a bound."""
        n = self.count(MOST_ENTRIES, least_bytes)
        self.entries += n
        if self.entries > MOST_IN_LISTS:
            raise damaged(self.name, f"more than {MOST_IN_LISTS:,} entries in its lists")
        return n

    def tensor(self) -> tuple[str, tuple[int, ...], Kind, int]:
        """Name, shape (the file has the sides from the last one to the first), kind, and where it begins."""
        name = self.text(LONGEST_NAME)
        n = self.number("I")
        if not 1 <= n <= MOST_SIDES:
            raise damaged(self.name, f"{shown(name)} has {n} sides")
        shape = tuple(int(self.number("Q")) for __ in range(n))[::-1]
        if not all(0 < side <= LONGEST_SIDE for side in shape):
            raise damaged(self.name, f"{shown(name)} has a side of no length, or of one that no machine can hold")
        kind, offset = self.number("I"), int(self.number("Q"))
        if kind not in KINDS:
            raise CheckpointError(
                "{file} keeps {name} in a kind of numbers that is not read here (number {kind} of GGUF). Take the file "
                "as F16, Q8_0 or Q4_0, or open the original model, the folder with config.json and model.safetensors.",
                file=shown(self.name),
                name=shown(name),
                kind=kind,
            )
        return name, shape, KINDS[kind], offset
