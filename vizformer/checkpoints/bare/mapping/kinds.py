"""The tensors of a file by kind: those that differ only in the number of their layer, or of their head, are one."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from vizformer.checkpoints.bare.structure.names import modules
from vizformer.checkpoints.files.weights import Weights
from vizformer.checkpoints.tensors.tensor_map import Shape

_NUMBERS = re.compile(
    r"(?:^|\.)(?:(\d{1,4})|\w{0,40}?(?:layer|block|encoder|decoder|head)_?(\d{1,3}))(?=\.|$)", re.IGNORECASE | re.ASCII
)
_HEADS = re.compile(r"head\w*[._]?$", re.IGNORECASE)
_MOST_NUMBERS = 6  # in a name; deeper trees of lists are read as they are
_LEAST_MATRICES = 3  # of a layer: queries, keys and values


@dataclass(frozen=True)
class TensorKind:
    pattern: str  # their name, with # for the number of the layer and * for that of the head
    shape: Shape
    dtype: str
    n: int
    raw: bool = False  # whether they are parameters without a module, which may be multiplied from either side


def patterns(weights: Weights) -> dict[str, str]:
    """The name of every tensor -> its pattern.

    A number is that of a layer where what stands under it has three matrices at least; within a layer it is that of a
    head where a name says so, or where all of those matrices are narrower than what they read.
    """
    spans = {name: _spans(name) for name in weights.tensors}
    members: dict[str, dict[str, dict[str, Shape]]] = {}
    for name, found in spans.items():
        for start, end in found:
            inside = members.setdefault(name[:start], {}).setdefault(name[start:end], {})
            inside[name[end:]] = weights.tensors[name].shape
    listed = {
        (place, number): _matrices(inside) for place, numbers in members.items() for number, inside in numbers.items()
    }
    result: dict[str, str] = {}
    for name, found in spans.items():
        chosen: dict[str, tuple[int, int]] = {}
        for start, end in found:
            matrices = listed[name[:start], name[start:end]]
            if len(matrices) < _LEAST_MATRICES or "*" in chosen:
                continue
            if _HEADS.search(name[:start]) or ("#" in chosen and all(rows != columns for rows, columns in matrices)):
                chosen["*"] = (start, end)
            elif not chosen:
                chosen["#"] = (start, end)
        pattern = name
        for mark, (start, end) in reversed(chosen.items()):
            pattern = f"{pattern[:start]}{mark}{pattern[end:]}"
        result[name] = pattern
    return result


def find_kinds(weights: Weights, found: Mapping[str, str]) -> list[TensorKind]:
    groups: dict[str, list[str]] = {}
    for name, pattern in found.items():
        groups.setdefault(pattern, []).append(name)
    raw = {module.weight for module in modules(weights.tensors).values() if module.raw}
    first = {pattern: weights.tensors[names[0]] for pattern, names in groups.items()}
    return [
        TensorKind(pattern, first[pattern].shape, first[pattern].dtype, len(names), names[0] in raw)
        for pattern, names in groups.items()
    ]


def _spans(name: str) -> list[tuple[int, int]]:
    return [matched.span(1 if matched[1] is not None else 2) for matched in _NUMBERS.finditer(name)][:_MOST_NUMBERS]


def _matrices(inside: Mapping[str, Shape]) -> list[Shape]:
    return [shape for shape in inside.values() if len(shape) == 2 and 1 not in shape]
