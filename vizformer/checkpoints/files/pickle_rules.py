"""What `torch.save` builds: tensors of storages, plain containers, numbers and texts, with the arguments it writes.

Objects of other classes may stand beside them: nothing is built of these but what `stand_ins` puts in their place.

Values are not known here, only their kinds: see `vizformer.checkpoints.files.pickles`.
"""

import math
import re
import sys
from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

_DEEPEST, _MOST_DIMENSIONS, _MOST_NUMBERS = 6, 64, 2**48


class PickleError(ValueError):
    """A pickle that `torch.save` did not write, or a damaged one."""


class ForeignError(PickleError):
    """A pickle that names something else than tensors and plain containers: it could be a program."""


@dataclass(frozen=True)
class Global:
    name: str


class Kind:
    """Something that was built, of which only the kind is known."""

    def __init__(self, name: str) -> None:
        self.name = name


BYTES, TENSOR, STORAGE, DTYPE, PLAIN, OBJECT = map(Kind, ("bytes", "tensor", "storage", "dtype", "plain", "object"))
DICT, ORDERED = Kind("dict"), Kind("OrderedDict")
DICTS = (DICT, ORDERED)


class Row(tuple[Any, ...]):
    """A tuple that knows how many tuples it has inside each other."""

    depth: int


def row_of(items: list[Any]) -> Row:
    row = Row(items)
    row.depth = 1 + max((item.depth for item in items if type(item) is Row), default=0)
    if row.depth > _DEEPEST:
        raise PickleError(f"more than {_DEEPEST} tuples inside each other")
    return row


def _whole(*values: Any) -> bool:
    return all(type(value) is int and 0 <= value < _MOST_NUMBERS for value in values)


def _sizes(size: Any, stride: Any) -> bool:
    """Whether these are the sizes and strides of a tensor that can be counted."""
    if type(size) is not Row or type(stride) is not Row or len(size) != len(stride):
        return False
    if len(size) > _MOST_DIMENSIONS or not _whole(*size, *stride):
        return False
    return bool(math.prod(n or 1 for n in size) < _MOST_NUMBERS)


def _is_tensor(a: Row) -> bool:
    return len(a) >= 4 and a[0] is STORAGE and _whole(a[1]) and _sizes(a[2], a[3])


def _is_parameter(a: Row) -> bool:
    return len(a) >= 1 and a[0] is TENSOR and len(a) <= 4


def _is_meta(a: Row) -> bool:
    return len(a) == 4 and isinstance(a[0], Global) and _sizes(a[1], a[2])


def _is_of_type(a: Row) -> bool:
    """A tensor with attributes: which function, which class, its arguments, its state."""
    if len(a) != 4 or not isinstance(a[0], Global) or not isinstance(a[1], Global) or type(a[2]) is not Row:
        return False
    rule = CALLS.get(a[0].name)
    kinds = ("torch.Tensor", "torch.nn.parameter.Parameter")
    if rule is None or rule[1] is not TENSOR or a[0].name == _OF_TYPE or a[1].name not in kinds:
        return False
    return bool(rule[0](a[2]))


def _is_text(a: Row) -> bool:
    return 1 <= len(a) <= 2 and type(a[0]) is str and all(type(item) is int for item in a[1:])


def _is_encoded(a: Row) -> bool:
    return len(a) == 2 and type(a[0]) is str and a[1] in ("latin1", "latin-1", "latin_1")


def _is_bytes(a: Row) -> bool:
    return not a or (len(a) == 1 and a[0] is BYTES) or _is_encoded(a)


_OF_TYPE: Final = "torch._tensor._rebuild_from_type_v2"
CALLS: dict[str, tuple[Callable[[Row], bool], Kind]] = {
    "collections.OrderedDict": (lambda a: not a, ORDERED),
    "collections.Counter": (lambda a: not a or (len(a) == 1 and a[0] in DICTS), DICT),
    "_codecs.encode": (_is_encoded, BYTES),
    "builtins.bytearray": (_is_bytes, PLAIN),
    "builtins.complex": (lambda a: len(a) == 2 and all(type(n) in (int, float) for n in a), PLAIN),
    "torch.Size": (lambda a: len(a) == 1 and type(a[0]) is Row and _whole(*a[0]), PLAIN),
    "torch.device": (_is_text, PLAIN),
    "torch.serialization._get_layout": (_is_text, PLAIN),
    "torch._utils._rebuild_tensor": (_is_tensor, TENSOR),
    "torch._utils._rebuild_tensor_v2": (_is_tensor, TENSOR),
    "torch._utils._rebuild_tensor_v3": (_is_tensor, TENSOR),
    "torch._utils._rebuild_meta_tensor_no_storage": (_is_meta, TENSOR),
    "torch._utils._rebuild_parameter": (_is_parameter, TENSOR),
    "torch._utils._rebuild_parameter_with_state": (_is_parameter, TENSOR),
    "torch.nn.parameter.Parameter": (_is_parameter, TENSOR),
    _OF_TYPE: (_is_of_type, TENSOR),
}
NAMED = ("builtins.set", "torch.Tensor")
ITEM_BYTES = {
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
STORAGE_NAME = re.compile(r"torch\.(?:cuda\.|storage\.)?([A-Z][A-Za-z0-9]{1,20})Storage")
VALUE_NAME = re.compile(
    r"torch\.(?:cuda\.|storage\.)?[A-Z][A-Za-z0-9]{1,20}Storage"
    r"|torch\.(?:(?:complex|float|bfloat|uint|int)\d{1,3}(?:_[a-z0-9]{1,12})?|bool|q?u?int\d{1,2}(?:x\d)?|bits\w{1,8})"
)
# Of Python's own modules, what people keep beside weights.  All else of them is a program, also where nothing runs it.
_OWN: Mapping[str, tuple[str, ...]] = {
    "argparse": ("Namespace",),
    "builtins": (
        "object",
        "getattr",
        "bool",
        "int",
        "float",
        "str",
        "list",
        "tuple",
        "dict",
        "frozenset",
        "slice",
        "range",
    ),
    "collections": ("defaultdict", "deque"),
    "copyreg": ("_reconstructor",),
    "datetime": ("datetime", "date", "timedelta"),
    "decimal": ("Decimal",),
    "fractions": ("Fraction",),
    "functools": ("partial",),
    "pathlib": ("Path", "PosixPath", "WindowsPath", "PurePosixPath", "PureWindowsPath"),
    "types": ("SimpleNamespace",),
    "uuid": ("UUID",),
}


def is_own_class(name: str) -> bool:
    """Whether a name may be that of a class that its author wrote, or of a library, for which a stand-in is taken."""
    module, __, rest = name.partition(".")
    return rest in _OWN.get(module, ()) or (module not in sys.stdlib_module_names and module != "__builtin__")


def is_known(name: str) -> bool:
    """Whether `torch.save` writes it for tensors and plain containers."""
    return name in CALLS or name in NAMED or VALUE_NAME.fullmatch(name) is not None


def full_name(module: str, name: str) -> str:
    """A name as it would be looked up now: files of Python 2 call modules otherwise."""
    if (module, name) in NAME_MAPPING:
        return ".".join(NAME_MAPPING[module, name])
    return f"{IMPORT_MAPPING.get(module, module)}.{name}"
