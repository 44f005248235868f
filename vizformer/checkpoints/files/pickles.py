"""The pickles of PyTorch's files, tried in a process of their own before `torch.load(weights_only=True)` builds them.

That runs no program, but it builds whatever a file asks for: a bytearray of 256 MB that is counted byte by byte, a key
that takes for ever to hash.  So the pickle is built once where memory and time are limited, with stand-ins for tensors
and storages; what goes beyond what `torch.save` writes for tensors and plain containers is refused by name.

Source: torch/_weights_only_unpickler.py, torch/serialization.py of PyTorch.
"""

import collections
import io
import json
import math
import pickle
import pickletools
import re
import sys
import tarfile
from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING
from collections.abc import Callable
from typing import Any

from vizformer.jobs import limits

LIMIT = 16 * limits.MEGABYTE  # bytes of one pickle; 20,000 tensors take 6
MOST_OPCODES = 3 * 2**18  # a tensor takes about 30, an entry of a vocabulary 3
MOST_MARKS = 2**17  # where containers begin; a tensor takes 2, and torch some microseconds and a list for each
_MEMORY, _SECONDS, _PATIENCE = 512, 1.0, 20.0  # MiB; of the processor; by the clock, of a busy machine
_MOST_NUMBERS = 2**48
_MAGIC = b"\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."  # 0x1950a86a20f9469cfc6c: how files began before PyTorch 1.6
_OPCODES = frozenset(
    (
        *(
            "PROTO",
            "STOP",
            "MARK",
            "GLOBAL",
            "NEWOBJ",
            "REDUCE",
            "BUILD",
            "BINPERSID",
            "BINGET",
            "LONG_BINGET",
            "BINPUT",
        ),
        *(
            "LONG_BINPUT",
            "TUPLE",
            "TUPLE1",
            "TUPLE2",
            "TUPLE3",
            "APPEND",
            "APPENDS",
            "SETITEM",
            "SETITEMS",
            "EMPTY_TUPLE",
        ),
        *(
            "EMPTY_LIST",
            "EMPTY_DICT",
            "EMPTY_SET",
            "NONE",
            "NEWFALSE",
            "NEWTRUE",
            "BININT",
            "BININT1",
            "BININT2",
            "LONG1",
        ),
        *("BINFLOAT", "BINUNICODE", "SHORT_BINSTRING"),
    )
)
_STORAGE = re.compile(r"torch\.(?:cuda\.|storage\.)?([A-Z][A-Za-z0-9]{1,20})Storage")
_DTYPE = re.compile(
    r"torch\.(?:(?:complex|float|bfloat|uint|int)\d{1,3}(?:_[a-z0-9]{1,12})?|bool|q?u?int\d{1,2}(?:x\d)?|bits\w{1,8})"
)
_BYTES = {"Double": 8, "Float": 4, "Half": 2, "BFloat16": 2, "Long": 8, "Int": 4, "Short": 2, "QInt32": 4} | {
    "ComplexDouble": 16,
    "ComplexFloat": 8,
}


class PickleError(ValueError):
    """A pickle that `torch.save` did not write, or a damaged one."""


class ForeignError(PickleError):
    """A pickle that names something else than tensors and plain containers: it could be a program."""


def check_pickle(data: bytes, file_size: int) -> None:
    """Tries the one pickle of an archive.

    Raises:
        ForeignError: it asks for something else than tensors and plain containers; says what.
        PickleError: it is damaged, has numbers that are not in the file, or takes too much memory or time.
    """
    _try(data, file_size, pickles=1)


def check_legacy(data: bytes, file_size: int) -> None:
    """Tries the five pickles with which a file begins as PyTorch wrote it before 1.6, before the numbers.

    Raises:
        ForeignError, PickleError: as `check_pickle`, or other pickles than those.
    """
    try:
        tarfile.TarInfo.frombuf(data[:512], "utf-8", "surrogateescape")
    except tarfile.HeaderError:
        pass
    else:  # of two ways to read it torch would take the other one
        raise PickleError("it is an archive of the kind tar")
    if data[2 : 2 + len(_MAGIC)] != _MAGIC:
        raise PickleError("it lacks the number with which torch.save begins a file")
    _try(data, file_size, pickles=5)


def _try(data: bytes, file_size: int, pickles: int) -> None:
    try:
        said = limits.tried(__name__, str(pickles), str(file_size), content=data, seconds=_PATIENCE, alone=True)
    except OSError as error:
        raise MemoryError("no room for the process that tries it") from error
    found = {"damaged": "reading it takes too much memory or time"} if said is None else json.loads(said)
    if "foreign" in found:
        raise ForeignError(found["foreign"])
    if found:
        raise PickleError(found["damaged"])


# --- what the other process does -----------------------------------------------------------------------------------


class _Tensor:
    """A stand-in for a tensor or a parameter."""

    def __new__(cls, *arguments: object) -> "_Tensor":
        if arguments and not isinstance(arguments[0], _Tensor):
            raise PickleError("a parameter that is no tensor")
        return super().__new__(cls)

    def __init__(self, *_: object) -> None:
        """Ignores all arguments."""

    def __setstate__(self, state: object) -> None:
        raise ForeignError("an object with a state of its own")


class _Value:
    """A stand-in for a data type, a kind of storage or a device."""

    def __init__(self, name: str) -> None:
        self.name = name


class _Storage:
    pass


def _sizes(*rows: Any) -> None:
    if not all(isinstance(row, tuple) and all(type(n) is int and n >= 0 for n in row) for row in rows):
        raise PickleError("sizes of a tensor that are none")
    if len({len(row) for row in rows}) > 1 or any(math.prod(n or 1 for n in row) >= _MOST_NUMBERS for row in rows[:1]):
        raise PickleError("a tensor larger than any")


def _rebuilt(storage: object, offset: object, size: object, stride: object, *_: object) -> _Tensor:
    if not isinstance(storage, _Storage) or type(offset) is not int or not 0 <= offset < _MOST_NUMBERS:
        raise PickleError("a tensor without a storage")
    _sizes(size, stride)
    return _Tensor()


def _meta(dtype: object, size: object, stride: object, *_: object) -> _Tensor:
    _sizes(size, stride)
    return _Tensor()


def _parameter(tensor: object, *_: object) -> _Tensor:
    return _Tensor(tensor)


def _of_type(function: Callable[..., _Tensor], kind: object, arguments: tuple[Any, ...], _: object) -> _Tensor:
    if function not in _REBUILT.values() or not (kind is _Tensor or kind is _TENSOR_CLASS):
        raise ForeignError("a tensor of a class of its own")
    return function(*arguments)


def _bytes(*arguments: Any) -> bytes:
    """Texts as bytes, as Python 2 had them, and nothing that grows."""
    if arguments and isinstance(arguments[0], bytes):
        return arguments[0]
    if arguments and (len(arguments) != 2 or arguments[1] not in ("latin1", "latin-1", "latin_1")):
        raise PickleError("bytes that are made of something else")
    return str(*arguments[:1]).encode("latin-1")


_TENSOR_CLASS = _Value("torch.Tensor")
_REBUILT: dict[str, Callable[..., Any]] = {
    "torch._utils._rebuild_tensor": _rebuilt,
    "torch._utils._rebuild_tensor_v2": _rebuilt,
    "torch._utils._rebuild_tensor_v3": _rebuilt,
    "torch._utils._rebuild_meta_tensor_no_storage": _meta,
    "torch._utils._rebuild_parameter": _parameter,
    "torch._utils._rebuild_parameter_with_state": _parameter,
}
_KNOWN: dict[str, Any] = _REBUILT | {
    "torch.nn.parameter.Parameter": _Tensor,
    "torch._tensor._rebuild_from_type_v2": _of_type,
    "torch.Tensor": _TENSOR_CLASS,
    "torch.Size": tuple,
    "torch.device": lambda *_: _Value("device"),
    "torch.serialization._get_layout": lambda *_: _Value("layout"),
    "collections.OrderedDict": collections.OrderedDict,
    "collections.Counter": collections.Counter,
    "_codecs.encode": _bytes,
    "builtins.bytearray": _bytes,
    "builtins.complex": complex,
    "builtins.set": set,
}


class _Trial(pickle.Unpickler):
    """Builds what the file asks for, with stand-ins for all that is torch's."""

    def __init__(self, file: io.BytesIO, file_size: int) -> None:
        super().__init__(file, fix_imports=False, encoding="utf-8")  # (find_class does what that does)
        self.left, self.keys = file_size, set[str]()

    def find_class(self, module: str, name: str) -> Any:
        module, name = NAME_MAPPING.get((module, name), (IMPORT_MAPPING.get(module, module), name))
        full = f"{module}.{name}"
        if full in _KNOWN:
            return _KNOWN[full]
        if _STORAGE.fullmatch(full) or _DTYPE.fullmatch(full):
            return _Value(full)
        raise ForeignError(full[:80])

    def persistent_load(self, said: Any) -> _Storage:
        """A storage: (storage, type, key, where it was, how many numbers[, view])."""
        if type(said) is not tuple or not 5 <= len(said) <= 6 or said[0] != "storage":
            raise ForeignError("something else than a storage beside it")
        kind, key, where, n, *view = said[1:]
        found = _STORAGE.fullmatch(kind.name) if isinstance(kind, _Value) else None
        if found is None or type(key) is not str or type(where) is not str or type(n) is not int or n < 0:
            raise PickleError("a storage without a type, a key and a length")
        if view and view != [None] and not (type(view[0]) is tuple and len(view[0]) == 3):
            raise PickleError("a storage with a view that is none")
        if key not in self.keys:
            self.keys.add(key)
            self.left -= n * _BYTES.get(found[1], 1)
        if self.left < 0:
            raise PickleError(f"a storage of {n:,} numbers, which are not in the file")
        return _Storage()


def _opcodes(content: bytes, pickles: int) -> None:
    """Holds the opcodes to those that torch reads, and their number to what is built in a second."""
    file, n, marks = io.BytesIO(content), 0, 0
    for _ in range(pickles):
        for code, _, _ in pickletools.genops(file):
            n, name = n + 1, code.name
            if name not in _OPCODES:
                raise ForeignError(f"the opcode {name}")
            if n > MOST_OPCODES:
                raise PickleError(f"more than {MOST_OPCODES:,} opcodes")
            if name == "MARK":
                marks += 1
                if marks > MOST_MARKS:
                    raise PickleError(f"more than {MOST_MARKS:,} marks")
    if pickles == 1 and file.tell() != len(content):
        raise PickleError("something stands behind its end")


def main() -> None:
    pickles, file_size = int(sys.argv[1]), int(sys.argv[2])
    content = sys.stdin.buffer.read()
    found = {}
    try:
        limits.limit(_MEMORY, 2 * _SECONDS)
        _opcodes(content, pickles)
        limits.limit(_MEMORY, _SECONDS)
        file = io.BytesIO(content)
        for _ in range(pickles):
            _Trial(file, file_size).load()
    except ForeignError as error:
        found = {"foreign": str(error)}
    except Exception as error:
        found = {"damaged": str(error).partition("\n")[0][:200] or type(error).__name__}
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
