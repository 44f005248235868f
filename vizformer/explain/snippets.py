"""A step's code to copy: plain PyTorch, with the numbers that it needs."""

import ast
import builtins
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pprint import pformat
from typing import Any

import numpy as np
import torch
from numpy import ndarray
from torch import Tensor

from vizformer.explain.arrays import float64
from vizformer.explain.step import Step

Given = ndarray | Tensor | int | float | Mapping[Any, Any] | Sequence[Any]

WRITTEN_OUT = 64  # the most numbers of a tensor that is written out; a longer one has a stand-in of its shape
_MODULES = {
    "math": "import math",
    "timeit": "import timeit",
    "Counter": "from collections import Counter",
    "pairwise": "from itertools import pairwise",
    "torch": "import torch",
    "nn": "from torch import nn",
    "F": "import torch.nn.functional as F",
}

# Two threads that parse at the same time can fail: in Python 3.11 they share the count of how deep the code is nested
# ("SystemError: AST constructor recursion depth mismatch", https://github.com/python/cpython/issues/106905).
_PARSING = threading.Lock()


@dataclass(frozen=True)
class Snippet:
    """Code that runs by itself.

    Attributes:
        imports: the import lines of the code.
        given: names and their numbers: `torch.tensor([...])` where they are few, else a stand-in of the same shape.
        code: the lines of the step.
        exact: whether all numbers are written out; then the lines give the step's result to the digits that are.
    """

    imports: str
    given: str
    code: str
    exact: bool

    def text(self, about: str = "") -> str:
        """The whole code; `about` is a comment on the stand-ins."""
        note = "" if self.exact or not about else "".join(f"# {line}\n" for line in about.splitlines())
        return "\n\n".join(part for part in (self.imports, (note + self.given).rstrip(), self.code) if part)


def snippet(steps: Sequence[Step], index: int) -> Snippet:
    """The code of step `index`, with the results of the steps before it as inputs."""
    known: dict[str, Given] = {}
    for step in steps[:index]:
        known |= {step.variable: step.result} | {made.variable: made.tensor.value for made in step.also}
    return standalone(steps[index].code, known | dict(steps[index].inputs))


def light(steps: Sequence[Step]) -> list[Step]:
    """Copies of steps to be kept: an input that `snippet` does not write out is reduced to its shape.

    The inputs are views of the model's weights and of the trace; a kept step would keep all of these in memory.
    """
    return [replace(step, inputs=light_inputs(step.inputs)) for step in steps]


def light_inputs(inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Copies of a step's inputs: a tensor that `standalone` does not write out is reduced to its shape."""
    return {name: _light(name, tensor) for name, tensor in inputs.items()}


def _light(name: str, tensor: Tensor) -> Tensor:
    short = tensor.numel() <= WRITTEN_OUT or name == "mask"
    return tensor.clone() if short else torch.empty(tensor.shape, dtype=tensor.dtype, device="meta")


def standalone(code: str, known: Mapping[str, Given]) -> Snippet:
    """`code` with its imports, and with the known names that it reads before it sets them."""
    names = _free(code, frozenset(known))
    lines = {name: _written(name, known[name]) for name in names if name in known}
    used = {*names, *(module for value in lines.values() for module in _used(value))}
    return Snippet(
        "\n".join(line for name, line in _MODULES.items() if name in used),
        "\n".join(f"{name} = {value}" for name, value in lines.items()),
        code,
        exact=not any(value.startswith(("torch.randn", "torch.zeros")) for value in lines.values()),
    )


def _used(value: str) -> tuple[str, ...]:
    """The modules that a value needs as `_written`; one with many numbers is searched without being parsed."""
    if not value.startswith("torch."):
        return _free(value)
    return ("torch", "math") if "math." in value else ("torch",)


@lru_cache(maxsize=1024)
def _free(code: str, known: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """The names that the code reads before it sets them, in the order of their use.

    Python's built-in names are left out unless they are `known` to be something else here (such as `id`).
    """
    bound, found = set(dir(builtins)) - known, dict[str, None]()
    with _PARSING:
        parsed = ast.parse(code)
    for statement in parsed.body:
        nodes = list(ast.walk(statement))
        named = [node for node in nodes if isinstance(node, ast.Name)]
        inside = {  # names that are local to this statement: those of a comprehension or a function
            name.id
            for node in nodes
            if isinstance(node, ast.comprehension)
            for name in ast.walk(node.target)
            if isinstance(name, ast.Name)
        } | {node.arg for node in nodes if isinstance(node, ast.arg)}
        if isinstance(statement, ast.FunctionDef):
            bound.add(statement.name)
            inside |= {node.id for node in named if isinstance(node.ctx, ast.Store)}
        read = sorted(
            (n for n in named if isinstance(n.ctx, ast.Load)), key=lambda node: (node.lineno, node.col_offset)
        )
        found |= dict.fromkeys(node.id for node in read if node.id not in bound | inside)
        bound |= {node.id for node in named if isinstance(node.ctx, ast.Store)} - inside
    return tuple(found)


def _written(name: str, value: Given) -> str:
    """A number or tensor as a PyTorch expression; texts and dicts as Python writes them."""
    if not isinstance(value, ndarray | Tensor):
        return pformat(value, width=100, compact=True, sort_dicts=False)
    shape = ", ".join(map(str, value.shape))
    if np.prod(value.shape) > WRITTEN_OUT and name != "mask":
        if value.dtype in (torch.bool, np.dtype(bool)):
            return f"torch.zeros({shape}, dtype=torch.bool)"
        return f"torch.zeros({shape}, dtype=torch.long)" if _is_integer(value) else f"torch.randn({shape})"
    numbers = _array(value)
    if numbers.size <= WRITTEN_OUT:
        return f"torch.tensor({_numbers(numbers.tolist())})"
    causal = np.where(np.triu(np.ones(numbers.shape[-2:], dtype=bool), 1), -np.inf, 0.0)
    same = numbers.ndim >= 2 and bool((numbers == causal).all())
    return f"torch.full(({shape}), -math.inf).triu(1)" if same else f"torch.zeros({shape})"


def _is_integer(value: ndarray | Tensor) -> bool:
    """Whether a tensor holds integers, such as indices of rows: 0, which every table has, then stands for them all."""
    if isinstance(value, Tensor):
        return not value.is_floating_point()
    return value.dtype.kind in "iu"


def _array(value: ndarray | Tensor) -> ndarray:
    if isinstance(value, Tensor):
        return float64(value) if value.is_floating_point() else value.cpu().numpy()
    return value


def _numbers(value: object) -> str:
    """Nested lists of numbers as Python writes them, with six digits."""
    if isinstance(value, list):
        return "[" + ", ".join(map(_numbers, value)) + "]"
    if not isinstance(value, float):
        return str(value)
    return str(value).replace("inf", "math.inf") if np.isinf(value) else repr(float(f"{value:.6g}"))
