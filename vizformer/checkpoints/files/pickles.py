"""The pickles of PyTorch's files, read by their opcodes before anything is built from them.

`torch.load(weights_only=True)` runs no program, but it builds whatever the opcodes ask for: a bytearray of 256 MB that
is counted byte by byte, a list inside a list ten million times.  Here a machine without values goes through the opcodes
first.  It knows what `torch.save` writes (tensors of storages in the file, plain containers, numbers and texts) and
refuses the rest, so that what is built afterwards is about as large as the file.

Source: pickletools.py of CPython; torch/_weights_only_unpickler.py, torch/serialization.py of PyTorch.
"""

import math
import re
import tarfile
from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from vizformer.checkpoints.files.untrusted_folder import MEGABYTE

LIMIT = 16 * MEGABYTE  # bytes of one pickle; 20,000 tensors take 6
MOST_OPCODES, MOST_CALLS = 2**19, 2**17  # opcodes of what are no tensors
_FOR_A_CALL = 64  # more opcodes for each tensor, which takes about 30
_MOST_MARKS, _DEEPEST, _MOST_DIMENSIONS, _MOST_NUMBERS = 64, 6, 64, 2**48
_MOST_ODD_KEYS = 4096  # of a dictionary: whoever chooses numbers well can make them all collide
_LARGEST_KEY = 2**48
_LONGEST_NAME = 200
_MAGIC = b"\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."  # 0x1950a86a20f9469cfc6c: how files began before PyTorch 1.6


class PickleError(ValueError):
    """A pickle that `torch.save` did not write, or a damaged one."""


class ForeignError(PickleError):
    """A pickle that names something else than tensors and plain containers: it could be a program."""


@dataclass(frozen=True)
class _Global:
    name: str


class _Kind:
    """Something that was built, of which only the kind is known."""

    def __init__(self, name: str) -> None:
        self.name = name


_BYTES, _TENSOR, _STORAGE, _DTYPE, _PLAIN = map(_Kind, ("bytes", "tensor", "storage", "dtype", "plain"))
_DICT, _ORDERED = _Kind("dict"), _Kind("OrderedDict")
_DICTS = (_DICT, _ORDERED)


class _Row(tuple[Any, ...]):
    """A tuple that knows how many tuples it has inside each other."""

    depth: int


def _row(items: list[Any]) -> _Row:
    row = _Row(items)
    row.depth = 1 + max((item.depth for item in items if type(item) is _Row), default=0)
    if row.depth > _DEEPEST:
        raise PickleError(f"more than {_DEEPEST} tuples inside each other")
    return row


def check_pickle(data: bytes, file_size: int) -> None:
    """Goes through the one pickle of an archive.

    Raises:
        PickleError: as `_Machine.run`, or something behind its end.
    """
    if _Machine(data, file_size).run(0) != len(data):
        raise PickleError("something stands behind its end")


def check_legacy(data: Any, file_size: int) -> None:
    """Goes through the pickles of a file as PyTorch wrote it before 1.6: five of them, then the numbers.

    Raises:
        PickleError: as `_Machine.run`, or other pickles than those.
    """
    try:
        tarfile.TarInfo.frombuf(bytes(data[:512]), "utf-8", "surrogateescape")
    except tarfile.HeaderError:
        pass
    else:  # of two ways to read it torch would take the other one
        raise PickleError("it is an archive of the kind tar")
    if bytes(data[2 : 2 + len(_MAGIC)]) != _MAGIC:
        raise PickleError("it lacks the number with which torch.save begins a file")
    machine, place = _Machine(data, file_size), 0
    for __ in range(5):  # the magic number, the version, the system, what was saved, the order of the storages
        place = machine.run(place)


@dataclass
class _Machine:
    """Runs opcodes on kinds instead of values; limits hold for all pickles of a file together."""

    data: Any  # bytes, or what can be sliced like them
    file_size: int
    opcodes: int = 0
    calls: int = 0
    odd_keys: int = 0
    numbers: int = 0  # bytes
    storages: set[str] = field(default_factory=set)

    def run(self, place: int) -> int:
        """Goes through the pickle at `place`; where it ends.

        Raises:
            ForeignError: it names something that `torch.save` does not write for tensors and plain containers.
            PickleError: opcodes that it does not use, too much of something, or an end too early.
        """
        try:
            return self._run(place)
        except (IndexError, KeyError, TypeError, AttributeError) as error:
            raise PickleError("its opcodes do not fit together") from error

    def _run(self, place: int) -> int:
        start, data, memo = place, self.data, dict[int, Any]()
        stack: list[Any] = []
        marks: list[list[Any]] = []
        left = MOST_OPCODES - self.opcodes
        while True:
            if (left := left - 1) < 0:
                raise PickleError(f"more than {MOST_OPCODES:,} opcodes beside its tensors")
            if place - start > LIMIT:
                raise PickleError(f"more than {LIMIT:,} bytes")
            code = data[place]
            place += 1
            if code == 0x71:  # q BINPUT
                memo[data[place]] = stack[-1]
                place += 1
            elif code == 0x72:  # r LONG_BINPUT
                memo[_number(data, place, 4)] = stack[-1]
                place += 4
            elif code == 0x68:  # h BINGET
                stack.append(memo[data[place]])
                place += 1
            elif code == 0x6A:  # j LONG_BINGET
                stack.append(memo[_number(data, place, 4)])
                place += 4
            elif code == 0x4B:  # K BININT1
                stack.append(data[place])
                place += 1
            elif code == 0x4D:  # M BININT2
                stack.append(_number(data, place, 2))
                place += 2
            elif code == 0x4A:  # J BININT
                stack.append(int.from_bytes(data[place : place + 4], "little", signed=True))
                place += 4
            elif code == 0x8A:  # LONG1
                size = data[place]
                stack.append(int.from_bytes(data[place + 1 : place + 1 + size], "little", signed=True))
                place += 1 + size
            elif code == 0x58:  # X BINUNICODE
                size = _number(data, place, 4)
                place += 4
                stack.append(_text(data, place, size))
                place += size
            elif code == 0x55:  # U SHORT_BINSTRING
                size = data[place]
                stack.append(_BYTES if size > 32 else bytes(data[place + 1 : place + 1 + size]).decode("latin-1"))
                place += 1 + size
            elif code == 0x28:  # ( MARK
                if len(marks) >= _MOST_MARKS:
                    raise PickleError(f"more than {_MOST_MARKS} containers inside each other")
                marks.append(stack)
                stack = []
            elif code == 0x74:  # t TUPLE
                items, stack = stack, marks.pop()
                stack.append(_row(items))
            elif code in (0x85, 0x86, 0x87):  # TUPLE1, 2, 3
                n = code - 0x84
                if len(stack) < n:
                    raise PickleError("its opcodes do not fit together")
                stack[-n:] = [_row(stack[-n:])]
            elif code == 0x29:  # ) EMPTY_TUPLE
                stack.append(_row([]))
            elif code == 0x7D:  # } EMPTY_DICT
                stack.append(_DICT)
            elif code == 0x5D:  # ] EMPTY_LIST
                stack.append([])
            elif code == 0x51:  # Q BINPERSID
                stack[-1] = self._storage(stack[-1])
            elif code == 0x63:  # c GLOBAL
                name, place = _global(data, place)
                stack.append(name)
            elif code == 0x52:  # R REDUCE
                arguments = stack.pop()
                stack[-1] = self._call(stack[-1], arguments)
                left += _FOR_A_CALL
            elif code == 0x81:  # NEWOBJ
                arguments = stack.pop()
                if stack[-1].name not in ("collections.OrderedDict", "torch.nn.parameter.Parameter"):
                    raise ForeignError(f"a new {stack[-1].name}")
                stack[-1] = self._call(stack[-1], arguments)
            elif code == 0x75:  # u SETITEMS
                items, stack = stack, marks.pop()
                self._dictionary(stack[-1], items)
            elif code == 0x73:  # s SETITEM
                items = [stack.pop(-2), stack.pop()]
                self._dictionary(stack[-1], items)
            elif code == 0x65:  # e APPENDS
                items, stack = stack, marks.pop()
                _list(stack[-1]).extend(items)
            elif code == 0x61:  # a APPEND
                item = stack.pop()
                _list(stack[-1]).append(item)
            elif code == 0x62:  # b BUILD
                state = stack.pop()
                if stack[-1] is not _ORDERED or state is not _DICT:
                    raise ForeignError("an object with a state of its own")
            elif code == 0x47:  # G BINFLOAT
                stack.append(0.5)
                place += 8
            elif code == 0x4E:  # N NONE
                stack.append(None)
            elif code in (0x88, 0x89):  # NEWTRUE, NEWFALSE
                stack.append(code == 0x88)
            elif code == 0x80:  # PROTO
                place += 1
            elif code == 0x2E:  # . STOP
                stack.pop()
                self.opcodes = MOST_OPCODES - left
                return place
            else:
                raise ForeignError(f"the opcode {code:#04x}")

    def _storage(self, said: Any) -> _Kind:
        """A storage, told by its number: (storage, type, key, where it was, how many numbers[, view])."""
        if type(said) is not _Row or not 5 <= len(said) <= 6 or said[0] != "storage":
            raise ForeignError("something else than a storage beside it")
        kind, key, where, n = said[1:5]
        if not isinstance(kind, _Global) or (found := _STORAGE_NAME.fullmatch(kind.name)) is None:
            raise ForeignError("a storage of no known type")
        if not isinstance(key, str) or not isinstance(where, str) or type(n) is not int or n < 0:
            raise PickleError("a storage without a key and a length")
        if len(said) == 6 and not (said[5] is None or (type(said[5]) is _Row and len(said[5]) == 3)):
            raise PickleError("a storage with a view that is none")
        if key not in self.storages:
            self.storages.add(key)
            self.numbers += n * _ITEM_SIZES.get(found[1], 1)
        if self.numbers > self.file_size:
            raise PickleError(f"a storage of {n:,} numbers in a file of {self.file_size:,} bytes")
        return _STORAGE

    def _call(self, function: Any, arguments: Any) -> Any:
        self.calls += 1
        if self.calls > MOST_CALLS:
            raise PickleError(f"more than {MOST_CALLS:,} tensors")
        if not isinstance(function, _Global) or type(arguments) is not _Row:
            raise ForeignError("a call of what is no function")
        if function.name == "builtins.set":
            (items,) = arguments
            for item in _list(items):
                self._key(item)
            return _PLAIN
        if function.name == "collections.OrderedDict" and arguments:  # Python 2 wrote a list of pairs
            (pairs,) = arguments
            for pair in _list(pairs):
                key, __ = pair
                self._key(key)
            return _ORDERED
        rule = _CALLS.get(function.name)
        if rule is None:
            raise ForeignError(function.name)
        accepts, result = rule
        if not accepts(arguments):
            raise PickleError(f"{function.name} with other arguments than torch.save writes")
        return result

    def _dictionary(self, target: Any, items: list[Any]) -> None:
        if target not in _DICTS or len(items) % 2:
            raise PickleError("items of what is no dictionary")
        for key in items[::2]:
            if type(key) is not str:
                self._key(key)

    def _key(self, key: Any) -> None:
        """Texts are hashed with a secret; numbers are not, and tuples of tuples take long."""
        if type(key) is str or key is None or key is _BYTES or isinstance(key, _Global):
            return
        if type(key) is float or _is_flat(key):
            self.odd_keys += 1
        elif type(key) not in (int, bool) or abs(key) >= _LARGEST_KEY:
            raise PickleError("a key of a dictionary that is neither a text nor a number")
        if self.odd_keys > _MOST_ODD_KEYS:
            raise PickleError(f"more than {_MOST_ODD_KEYS:,} keys that are no texts")


def _is_flat(key: Any) -> bool:
    """Whether it is a short tuple of plain values."""
    return type(key) is _Row and len(key) <= 8 and all(type(i) in (str, int, bool) or i is None for i in key)


def _number(data: Any, place: int, size: int) -> int:
    return int.from_bytes(data[place : place + size], "little")


def _text(data: Any, place: int, size: int) -> str:
    """A text, of which only the beginning is kept: no name that matters here is longer."""
    if place + size > len(data):
        raise PickleError("it ends inside a text")
    return str(data[place : place + min(size, _LONGEST_NAME)], "utf-8", "replace")


def _global(data: Any, place: int) -> tuple[_Global, int]:
    """A name as it would be looked up now: files of Python 2 call modules otherwise."""
    line = bytes(data[place : place + 2 * _LONGEST_NAME])
    module, name, *rest = line.split(b"\n", 2)
    if not rest:
        raise PickleError("a name that does not end")
    found = (module.decode("utf-8", "replace"), name.decode("utf-8", "replace"))
    if found in NAME_MAPPING:
        found = NAME_MAPPING[found]
    elif found[0] in IMPORT_MAPPING:
        found = (IMPORT_MAPPING[found[0]], found[1])
    full = ".".join(found)
    if full not in _CALLS and full not in _NAMED and not _VALUE_NAME.fullmatch(full):
        raise ForeignError(full)
    return _Global(full), place + len(module) + len(name) + 2


def _list(value: Any) -> list[Any]:
    if type(value) is not list:
        raise PickleError("items of what is no list")
    return value


def _whole(*values: Any) -> bool:
    return all(type(value) is int and 0 <= value < _MOST_NUMBERS for value in values)


def _sizes(size: Any, stride: Any) -> bool:
    """Whether these are the sizes and strides of a tensor that can be counted."""
    if type(size) is not _Row or type(stride) is not _Row or len(size) != len(stride):
        return False
    if len(size) > _MOST_DIMENSIONS or not _whole(*size, *stride):
        return False
    return bool(math.prod(n or 1 for n in size) < _MOST_NUMBERS)


def _is_tensor(a: _Row) -> bool:
    return len(a) >= 4 and a[0] is _STORAGE and _whole(a[1]) and _sizes(a[2], a[3])


def _is_parameter(a: _Row) -> bool:
    return len(a) >= 1 and a[0] is _TENSOR and len(a) <= 4


def _is_meta(a: _Row) -> bool:
    return len(a) == 4 and isinstance(a[0], _Global) and _sizes(a[1], a[2])


def _is_of_type(a: _Row) -> bool:
    """A tensor with attributes: which function, which class, its arguments, its state."""
    if len(a) != 4 or not isinstance(a[0], _Global) or not isinstance(a[1], _Global) or type(a[2]) is not _Row:
        return False
    rule = _CALLS.get(a[0].name)
    kinds = ("torch.Tensor", "torch.nn.parameter.Parameter")
    if rule is None or rule[1] is not _TENSOR or a[0].name == _OF_TYPE or a[1].name not in kinds:
        return False
    return bool(rule[0](a[2]))


def _is_text(a: _Row) -> bool:
    return 1 <= len(a) <= 2 and type(a[0]) is str and all(type(item) is int for item in a[1:])


def _is_encoded(a: _Row) -> bool:
    return len(a) == 2 and type(a[0]) is str and a[1] in ("latin1", "latin-1", "latin_1")


def _is_bytes(a: _Row) -> bool:
    return not a or (len(a) == 1 and a[0] is _BYTES) or _is_encoded(a)


_OF_TYPE: Final = "torch._tensor._rebuild_from_type_v2"
_CALLS: dict[str, tuple[Callable[[_Row], bool], _Kind]] = {
    "collections.OrderedDict": (lambda a: not a, _ORDERED),
    "collections.Counter": (lambda a: not a or (len(a) == 1 and a[0] in _DICTS), _DICT),
    "_codecs.encode": (_is_encoded, _BYTES),
    "builtins.bytearray": (_is_bytes, _PLAIN),
    "builtins.complex": (lambda a: len(a) == 2 and all(type(n) in (int, float) for n in a), _PLAIN),
    "torch.Size": (lambda a: len(a) == 1 and type(a[0]) is _Row and _whole(*a[0]), _PLAIN),
    "torch.device": (_is_text, _PLAIN),
    "torch.serialization._get_layout": (_is_text, _PLAIN),
    "torch._utils._rebuild_tensor": (_is_tensor, _TENSOR),
    "torch._utils._rebuild_tensor_v2": (_is_tensor, _TENSOR),
    "torch._utils._rebuild_tensor_v3": (_is_tensor, _TENSOR),
    "torch._utils._rebuild_meta_tensor_no_storage": (_is_meta, _TENSOR),
    "torch._utils._rebuild_parameter": (_is_parameter, _TENSOR),
    "torch._utils._rebuild_parameter_with_state": (_is_parameter, _TENSOR),
    "torch.nn.parameter.Parameter": (_is_parameter, _TENSOR),
    _OF_TYPE: (_is_of_type, _TENSOR),
}
_NAMED = ("builtins.set", "torch.Tensor")
_ITEM_SIZES = {
    "Double": 8,
    "Float": 4,
    "Half": 2,
    "BFloat16": 2,
    "Long": 8,
    "Int": 4,
    "Short": 2,
    "QInt32": 4,
    "ComplexDouble": 16,
    "ComplexFloat": 8,
}
_STORAGE_NAME = re.compile(r"torch\.(?:cuda\.|storage\.)?([A-Z][A-Za-z0-9]{1,20})Storage")
_VALUE_NAME = re.compile(
    r"torch\.(?:cuda\.|storage\.)?[A-Z][A-Za-z0-9]{1,20}Storage"
    r"|torch\.(?:(?:complex|float|bfloat|uint|int)\d{1,3}(?:_[a-z0-9]{1,12})?|bool|q?u?int\d{1,2}(?:x\d)?|bits\w{1,8})"
)
