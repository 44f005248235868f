"""One step of the arithmetic: what is computed, from which numbers, and how we know that the model did the same."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float, Num
from numpy import ndarray

from vizformer.messages import Message

TOLERANCE = 1e-5


Axis = Literal["features", "queries", "keys", "heads", "candidates"]
"""What is counted along an axis: entries of a vector, query or key positions, heads, candidates for the next token."""


@dataclass(frozen=True)
class Operand:
    """A tensor that goes into a step: its symbol (LaTeX), what it is in words, and its values.

    These are float64, or integers where something is counted (distances, buckets).
    """

    symbol: str
    meaning: Message
    value: Num[ndarray, "..."]
    axes: tuple[Axis, ...] = ("features",)


@dataclass(frozen=True)
class Contraction:
    """A product summed term by term: total[r, c] = sum_m left[r, m] * right[m, c] (+ add[c])."""

    left: Float[ndarray, "rows terms"]
    right: Float[ndarray, "terms columns"]
    add: Float[ndarray, " columns"] | None = None

    def products(self, row: int, column: int) -> Float[ndarray, " terms"]:
        """The terms left[row, m] * right[m, column], before they are summed."""
        return self.left[row] * self.right[:, column]

    def total(self) -> Float[ndarray, "rows columns"]:
        total = self.left @ self.right
        return total if self.add is None else total + self.add


@dataclass(frozen=True)
class Proof:
    """A comparison with a number that the model itself computed.

    Attributes:
        anchor: the model's tensor that it was compared with, in words.
        difference: the largest |recomputed - recorded| over the tensor.
        holds: whether |difference| <= 1e-5 * max(1, |value|) everywhere.
        direct: whether this step's own result was compared; otherwise it is proved through a later step, into
            which it goes.
    """

    anchor: Message
    difference: float
    holds: bool
    direct: bool

    @classmethod
    def compare(
        cls, anchor: Message, recomputed: Float[ndarray, "..."], recorded: Float[ndarray, "..."], direct: bool = True
    ) -> "Proof":
        difference = np.abs(recomputed - recorded)
        limit = TOLERANCE * np.maximum(1.0, np.abs(recorded))
        # "not (difference <= limit)" rather than ">": NaN must not pass as agreement.
        return cls(anchor, float(difference.max(initial=0.0)), bool(np.all(difference <= limit)), direct)


@dataclass(frozen=True)
class Step:
    """One line of the arithmetic.

    Attributes:
        key: names the step in tests and links.
        title, text: what happens and why, in words.
        formula: in symbols (LaTeX).
        live: the same with this sentence's numbers, for one component (LaTeX; long sums are elided).
        operands: what goes in.
        symbol: of the result (LaTeX).
        result: float64; a row [n] or a matrix [rows, n].
        code: the torch line; the codes of all steps, in order, run as one program (`program`).
        variable: the name in `code` that holds the result.
        proof: how we know.
        contraction: the sum behind the result, term by term, where it is one.
        blocked: cells that the mask blocks, for steps over the keys.
        axes: what is counted along the axes of the result.
        edited: whether a number of this step was set by hand (`vizformer.model.Edit`) instead of computed.
    """

    key: str
    title: Message
    text: Message
    formula: str
    live: str
    operands: tuple[Operand, ...]
    symbol: str
    result: Float[ndarray, "..."]
    code: str
    variable: str
    proof: Proof
    contraction: Contraction | None = None
    blocked: Bool[ndarray, " n"] | None = None
    axes: tuple[Axis, ...] = ("features",)
    edited: bool = False

    @property
    def difference(self) -> float:
        return self.proof.difference


def program(steps: list[Step]) -> str:
    """The codes of all steps as one program; it needs `checkpoint` and `trace` in scope."""
    return "import math, torch, torch.nn.functional as F\n\n" + "\n".join(step.code for step in steps) + "\n"
