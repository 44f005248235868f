"""The pickles of PyTorch's files, read by their opcodes before anything is built from them.

`torch.load(weights_only=True)` runs no program, but it builds whatever the opcodes ask for: a bytearray of 256 MB that
is counted byte by byte, a list inside a list ten million times.  Here a machine without values goes through the opcodes
first.  It knows what `torch.save` writes (tensors of storages in the file, plain containers, numbers and texts) and
refuses the rest, so that what is built afterwards is about as large as the file.  Classes of the file's author are
noted, and their objects may hold what they like: `stand_ins` builds dictionaries in their place.

Source: pickletools.py of CPython; torch/_weights_only_unpickler.py, torch/serialization.py of PyTorch.
"""

import tarfile
from dataclasses import dataclass, field
from typing import Any

from vizformer.checkpoints.files.pickle_rules import (
    BYTES,
    CALLS,
    DICT,
    DICTS,
    ITEM_BYTES,
    OBJECT,
    ORDERED,
    PLAIN,
    STORAGE,
    STORAGE_NAME,
    ForeignError,
    Global,
    Kind,
    PickleError,
    Row,
    full_name,
    is_known,
    is_own_class,
    row_of,
)
from vizformer.checkpoints.files.untrusted_folder import MEGABYTE

LIMIT = 16 * MEGABYTE  # bytes of one pickle; 20,000 tensors take 6
MOST_OPCODES, MOST_CALLS = 2**19, 2**17  # opcodes of what are no tensors
_FOR_A_CALL = 64  # more opcodes for each tensor, which takes about 30
_MOST_MARKS = 64
_MOST_ODD_KEYS = 4096  # of a dictionary: whoever chooses numbers well can make them all collide
_LARGEST_KEY = 2**48
_LONGEST_NAME = 200
_MAGIC = b"\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."  # 0x1950a86a20f9469cfc6c: how files began before PyTorch 1.6


def check_pickle(data: bytes, file_size: int) -> tuple[str, ...]:
    """Goes through the one pickle of an archive; the classes that need a stand-in.

    Raises:
        PickleError: as `_Machine.run`, or something behind its end.
    """
    machine = _Machine(data, file_size, stand_ins=True)
    if machine.run(0) != len(data):
        raise PickleError("something stands behind its end")
    return tuple(machine.foreign)


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
    stand_ins: bool = False
    foreign: dict[str, None] = field(default_factory=dict)  # in the order of the file
    opcodes: int = 0
    calls: int = 0
    odd_keys: int = 0
    numbers: int = 0  # bytes
    storages: set[str] = field(default_factory=set)

    def run(self, place: int) -> int:
        """Goes through the pickle at `place`; where it ends."""
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
                stack.append(BYTES if size > 32 else bytes(data[place + 1 : place + 1 + size]).decode("latin-1"))
                place += 1 + size
            elif code == 0x28:  # ( MARK
                if len(marks) >= _MOST_MARKS:
                    raise PickleError(f"more than {_MOST_MARKS} containers inside each other")
                marks.append(stack)
                stack = []
            elif code == 0x74:  # t TUPLE
                items, stack = stack, marks.pop()
                stack.append(row_of(items))
            elif code in (0x85, 0x86, 0x87):  # TUPLE1, 2, 3
                n = code - 0x84
                if len(stack) < n:
                    raise PickleError("its opcodes do not fit together")
                stack[-n:] = [row_of(stack[-n:])]
            elif code == 0x29:  # ) EMPTY_TUPLE
                stack.append(row_of([]))
            elif code == 0x7D:  # } EMPTY_DICT
                stack.append(DICT)
            elif code == 0x5D:  # ] EMPTY_LIST
                stack.append([])
            elif code == 0x51:  # Q BINPERSID
                stack[-1] = self._storage(stack[-1])
            elif code == 0x63:  # c GLOBAL
                name, place = self._global(data, place)
                stack.append(name)
            elif code == 0x52:  # R REDUCE
                arguments = stack.pop()
                stack[-1] = self._call(stack[-1], arguments)
                left += _FOR_A_CALL
            elif code == 0x81:  # NEWOBJ
                arguments = stack.pop()
                if stack[-1].name not in ("collections.OrderedDict", "torch.nn.parameter.Parameter", *self.foreign):
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
                if stack[-1] is not OBJECT:
                    _list(stack[-1]).extend(items)
            elif code == 0x61:  # a APPEND
                item = stack.pop()
                if stack[-1] is not OBJECT:
                    _list(stack[-1]).append(item)
            elif code == 0x62:  # b BUILD
                state = stack.pop()
                if stack[-1] is not OBJECT and (stack[-1] is not ORDERED or state is not DICT):
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

    def _global(self, data: Any, place: int) -> tuple[Global, int]:
        """A name as it would be looked up now: files of Python 2 call modules otherwise."""
        line = bytes(data[place : place + 2 * _LONGEST_NAME])
        module, name, *rest = line.split(b"\n", 2)
        if not rest:
            raise PickleError("a name that does not end")
        full = full_name(module.decode("utf-8", "replace"), name.decode("utf-8", "replace"))
        if full not in self.foreign and not is_known(full):
            if not (self.stand_ins and is_own_class(full)):
                raise ForeignError(full)
            self.foreign[full] = None
        return Global(full), place + len(module) + len(name) + 2

    def _storage(self, said: Any) -> Kind:
        """A storage, told by its number: (storage, type, key, where it was, how many numbers[, view])."""
        if type(said) is not Row or not 5 <= len(said) <= 6 or said[0] != "storage":
            raise ForeignError("something else than a storage beside it")
        kind, key, where, n = said[1:5]
        if not isinstance(kind, Global) or (found := STORAGE_NAME.fullmatch(kind.name)) is None:
            raise ForeignError("a storage of no known type")
        if not isinstance(key, str) or not isinstance(where, str) or type(n) is not int or n < 0:
            raise PickleError("a storage without a key and a length")
        if len(said) == 6 and not (said[5] is None or (type(said[5]) is Row and len(said[5]) == 3)):
            raise PickleError("a storage with a view that is none")
        if key not in self.storages:
            self.storages.add(key)
            self.numbers += n * ITEM_BYTES.get(found[1], 1)
        if self.numbers > self.file_size:
            raise PickleError(f"a storage of {n:,} numbers in a file of {self.file_size:,} bytes")
        return STORAGE

    def _call(self, function: Any, arguments: Any) -> Any:
        self.calls += 1
        if self.calls > MOST_CALLS:
            raise PickleError(f"more than {MOST_CALLS:,} tensors")
        if not isinstance(function, Global) or type(arguments) is not Row:
            raise ForeignError("a call of what is no function")
        if function.name in self.foreign:
            return OBJECT
        if function.name == "builtins.set":
            (items,) = arguments
            for item in _list(items):
                self._key(item)
            return PLAIN
        if function.name == "collections.OrderedDict" and arguments:  # Python 2 wrote a list of pairs
            (pairs,) = arguments
            for pair in _list(pairs):
                key, __ = pair
                self._key(key)
            return ORDERED
        rule = CALLS.get(function.name)
        if rule is None:
            raise ForeignError(function.name)
        accepts, result = rule
        if not accepts(arguments):
            raise PickleError(f"{function.name} with other arguments than torch.save writes")
        return result

    def _dictionary(self, target: Any, items: list[Any]) -> None:
        if target not in (*DICTS, OBJECT) or len(items) % 2:
            raise PickleError("items of what is no dictionary")
        for key in items[::2]:
            if type(key) is not str:
                self._key(key)

    def _key(self, key: Any) -> None:
        """Texts are hashed with a secret; numbers are not, and tuples of tuples take long."""
        if type(key) is str or key is None or key is BYTES or isinstance(key, Global):
            return
        if type(key) is float or key is OBJECT or _is_flat(key):
            self.odd_keys += 1
        elif type(key) not in (int, bool) or abs(key) >= _LARGEST_KEY:
            raise PickleError("a key of a dictionary that is neither a text nor a number")
        if self.odd_keys > _MOST_ODD_KEYS:
            raise PickleError(f"more than {_MOST_ODD_KEYS:,} keys that are no texts")


def _is_flat(key: Any) -> bool:
    """Whether it is a short tuple of plain values."""
    return type(key) is Row and len(key) <= 8 and all(type(i) in (str, int, bool) or i is None for i in key)


def _number(data: Any, place: int, size: int) -> int:
    return int.from_bytes(data[place : place + size], "little")


def _text(data: Any, place: int, size: int) -> str:
    """A text, of which only the beginning is kept: no name that matters here is longer."""
    if place + size > len(data):
        raise PickleError("it ends inside a text")
    return str(data[place : place + min(size, _LONGEST_NAME)], "utf-8", "replace")


def _list(value: Any) -> list[Any]:
    if type(value) is not list:
        raise PickleError("items of what is no list")
    return value
