"""Names of tensors as a tree of modules, and the words in them that say a role.

`blocks.0.sa.heads.3.key.weight` is the weight of the module `blocks.0.sa.heads.3.key`.  A parameter without a module of
its own (`blocks.0.attn.W_q`) counts as the weight of a module with its name.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from vizformer.checkpoints.files.weights import Stored
from vizformer.checkpoints.tensors.tensor_map import Shape

_WEIGHTS = ("weight", "w", "kernel", "gamma", "a_2", "a2", "a", "alpha", "scale", "g")
_BIASES = ("bias", "b", "beta", "b_2", "b2", "shift")
_OWN_NORM = ("gamma", "beta", "a_2", "b_2", "a2", "b2", "alpha", "scale", "shift", "g", "a")
_SUFFIX = re.compile(r"(.+)_(weight|bias)")
_RAW_BIAS = re.compile(r"[bB]_?(\w+)")
# A number that is part of a module's name counts as one of its own: block_0 is block.0.
_COUNTED = re.compile(r"(\w*(?:layer|block|encoder|decoder|head|transformer)s?|h|l)_?(\d{1,3})", re.IGNORECASE)


@dataclass(frozen=True)
class Module:
    """A weight and a bias, or one of them."""

    path: str
    weight: str | None
    bias: str | None
    shape: Shape  # of the weight, else of the bias
    # whether the weight is a parameter without a module around it, so that x W may be meant as well as W x
    raw: bool = False
    own: bool = False  # whether the names are those of a norm that its author wrote (gamma, a_2, ...)
    flat: bool = False  # whether the tensor is a convolution over one position, [out, in, 1], which is a matrix
    bias_shape: Shape = ()

    def is_like(self, other: "Module") -> bool:
        """Whether it has the same tensors, of the same shapes."""
        return (self.shape, self.bias_shape) == (other.shape, other.bias_shape) and (self.weight is None) == (
            other.weight is None
        )

    @property
    def is_matrix(self) -> bool:
        return self.weight is not None and len(self.shape) == 2

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name in (self.weight, self.bias) if name is not None)

    @property
    def parent(self) -> str:
        return self.path.rpartition(".")[0]

    @property
    def last(self) -> str:
        return self.path.rpartition(".")[2]


def modules(tensors: Mapping[str, Stored]) -> dict[str, Module]:
    """The modules of a state dict, in its order."""
    found: dict[str, dict[str, str]] = {}
    raw: set[str] = set()
    for name, stored in tensors.items():
        path, kind = _place(name, stored, tensors)
        entry = found.setdefault(path, {})
        if kind in entry:  # `w` beside `weight`
            path, kind = name, "weight"
            entry = found.setdefault(path, {})
        entry[kind] = name
        if path == name:
            raw.add(path)
    return {
        path: Module(
            path,
            entry.get("weight"),
            entry.get("bias"),
            _flat(tensors[entry["weight" if "weight" in entry else "bias"]].shape),
            path in raw,
            any(name.rpartition(".")[2] in _OWN_NORM for name in entry.values()),
            "weight" in entry and len(_flat(shape := tensors[entry["weight"]].shape)) < len(shape),
            tensors[entry["bias"]].shape if "bias" in entry else (),
        )
        for path, entry in found.items()
    }


def _flat(shape: Shape) -> Shape:
    """A convolution over one position is a matrix."""
    return shape[:2] if len(shape) == 3 and shape[2] == 1 and 1 not in shape[:2] else shape


def _place(name: str, stored: Stored, tensors: Mapping[str, Stored]) -> tuple[str, str]:
    """The path of a tensor's module, and whether it is the weight or the bias of it."""
    parent, dot, leaf = name.rpartition(".")
    if len(stored.shape) == 1 and (bias := _RAW_BIAS.fullmatch(leaf)):
        for start in ("W_", "w_", "W", "w"):
            if (matrix := f"{parent}{dot}{start}{bias[1]}") in tensors and len(tensors[matrix].shape) == 2:
                return matrix, "bias"
    if dot and leaf in _WEIGHTS:
        return parent, "weight"
    if dot and leaf in _BIASES and len(stored.shape) == 1:
        return parent, "bias"
    # nn.MultiheadAttention has in_proj_weight
    if (suffix := _SUFFIX.fullmatch(leaf)) and (suffix[2] == "weight" or len(stored.shape) == 1):
        return f"{parent}{dot}{suffix[1]}", suffix[2]
    return name, "weight"


def steps(path: str) -> list[str]:
    """The names on the way to a module; numbers stand alone."""
    return list(_steps(path))


@lru_cache(maxsize=2**15)
def _steps(path: str) -> tuple[str, ...]:
    found: list[str] = []
    for part in path.split("."):
        counted = _COUNTED.fullmatch(part)
        found += [counted[1], counted[2]] if counted else [part]
    return tuple(found)


def is_number(step: str) -> bool:
    return step.isdecimal() and step.isascii() and len(step) < 5


def natural(path: str) -> list[tuple[int, int, str]]:
    """By which net.10 comes after net.9, and norm before norm2."""
    return [
        (0, int(part), "") if part.isdecimal() and len(part) < 9 else (1, 0, part)
        for part in re.split(r"(\d+)|[._]", path)
        if part
    ]


def words(path: str) -> set[str]:
    """The words of a name, in small letters: pos_ffn.layerNorm2 has pos, ffn, layer and norm."""
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", path)}


def differing(first: str, second: str) -> tuple[str, str]:
    """Two names without what they begin with and end in alike."""
    one, other = first.split("."), second.split(".")
    while one and other and one[0] == other[0]:
        one, other = one[1:], other[1:]
    while one and other and one[-1] == other[-1]:
        one, other = one[:-1], other[:-1]
    return ".".join(one), ".".join(other)


def numbers(path: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d{1,4}", path))


def under(names: Iterable[str], place: str) -> list[str]:
    """Which of the names lie in a module; all, for the module that holds everything."""
    return [name for name in names if not place or name == place or name.startswith(f"{place}.")]
