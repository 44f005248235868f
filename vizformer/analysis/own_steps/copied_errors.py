"""Errors that are copied from one tutorial to the next: nine short programs with one wrong line each, and what it does.

Every program runs as it stands (`program`), with the wrong line or with the right one in its place.  What is shown of
them is what these lines themselves compute: `run` executes them (they are constants of this module, never a text from
outside) with the numbers of a trace (`error_operands`), and `error_contrasts` holds both results against what the model
recorded.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from vizformer.word_tables import data_of


@dataclass(frozen=True)
class Exercise:
    """A program, the index of its wrong line, what belongs there, and the name that holds the result."""

    lines: tuple[str, ...]
    wrong: int
    right: str
    result: str

    def program(self, *, corrected: bool) -> str:
        """The code, with the wrong line or with the right one."""
        lines = list(self.lines)
        if corrected:
            lines[self.wrong] = self.right
        return "\n".join(lines)


@dataclass(frozen=True)
class Ran:
    """What a program left: its names, and how it failed (empty: it did not)."""

    names: Mapping[str, Any]
    error: str = ""


EXERCISES: Mapping[str, Exercise] = {
    name: Exercise(tuple(one["program"].splitlines()), one["wrong"], one["right"], one["result"])
    for name, one in data_of(__file__).items()
}


def run(name: str, given: Mapping[str, object], *, corrected: bool) -> Ran:
    """Executes a program of this module with these numbers; random ones are drawn from seed 0, on the side."""
    names: dict[str, Any] = {"math": math, "torch": torch, "nn": nn, "F": F, **given}
    try:
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            torch.default_generator.manual_seed(0)  # torch.manual_seed asks for the stack of calls, for GPUs: 7 ms
            exec(compile(EXERCISES[name].program(corrected=corrected), f"<{name}>", "exec"), names)
    except (TypeError, AssertionError) as error:
        return Ran(names, f"{type(error).__name__}: {error}")
    return Ran(names)
