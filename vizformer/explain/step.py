"""One step of the arithmetic: what is computed, from which numbers, and how we know that the model did the same.

How far apart the two may be follows from the precision in which the model computes.

- float32 (and float64): |recomputed - recorded| <= 1e-5 max(1, |recorded|), about 84 units in the last place: its sums of
  hundreds of terms are rounded after every term.
- bfloat16, float16: sums are kept in float32 and rounded once, when a tensor is written; the recomputation rounds at the
  same places (`arrays.stored`) and goes on from what the model recorded.  What is left are sums that fall to the other
  side of a boundary, one unit in the last place each, so that the limit is ROUNDINGS = 4 units of the size of what was
  summed:  |recomputed - recorded| <= 4 eps s,  eps = 2^-7 (bfloat16), 2^-10 (float16),
  s = max(|recorded|, rms of its row, the terms that were added to it).

Source: Higham 2002, "Accuracy and Stability of Numerical Algorithms", section 3.1 (the error of a sum is bounded by its
terms, not by its result).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Bool, Float, Num
from numpy import ndarray
from torch import Tensor

from vizformer.checkpoints.tensors.memory import name_of
from vizformer.explain.arrays import float64, is_half
from vizformer.messages import Message

_SET = re.compile(r"^(\w+)[\w, ]* = ", re.MULTILINE)  # a name that code sets, the first of several
TOLERANCE = 1e-5
ROUNDINGS = 4  # the tolerance in half precision, in units in the last place


Axis = Literal["features", "queries", "keys", "heads", "candidates"]
"""The meaning of an axis: entries of a vector, query or key positions, heads, candidates for the next token,
distances between tokens."""


@dataclass(frozen=True)
class Operand:
    """An operand of a step: its symbol (LaTeX), what it is in words, and its values.

    These are float64, or integers where something is counted (distances, buckets).
    """

    symbol: str
    meaning: Message
    value: Num[ndarray, "..."]
    axes: tuple[Axis, ...] = ("features",)


@dataclass(frozen=True)
class Made:
    """A further result of a step: the keys and values that come with the queries."""

    variable: str
    tensor: Operand


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
        holds: whether |difference| is within what the model's precision allows, everywhere (see the module).
        direct: whether this step's own result was compared; otherwise it is proved through a later step, into
            which it goes.
        precision: the dtype in which the model computed: "float32", "bfloat16", ...
    """

    anchor: Message
    difference: float
    holds: bool
    direct: bool
    precision: str = "float32"

    @classmethod
    def compare(
        cls,
        anchor: Message,
        recomputed: Float[ndarray, "..."],
        recorded: Tensor | Float[ndarray, "..."],
        direct: bool = True,
        *,
        terms: Float[ndarray, "..."] | float = 0.0,
        dtype: torch.dtype | None = None,
    ) -> "Proof":
        """Compares a recomputed tensor with one that the model recorded.

        `terms` is the size of the summed terms, if it exceeds the sum.  `dtype` is the model's dtype,
        if `recorded` does not have it (an array: float32).
        """
        if isinstance(recorded, Tensor):
            dtype, recorded = dtype or recorded.dtype, float64(recorded)
        dtype = dtype or torch.float32
        difference = np.abs(recomputed - recorded)
        # "not (difference <= limit)" rather than ">": NaN must not pass as agreement.
        holds = bool(np.all(difference <= limit(recorded, dtype, terms)))
        return cls(anchor, float(difference.max(initial=0.0)), holds, direct, name_of(dtype))


def limit(
    recorded: Float[ndarray, "..."], dtype: torch.dtype, terms: Float[ndarray, "..."] | float = 0.0
) -> Float[ndarray, "..."]:
    """The largest allowed |recomputed - recorded|, cell by cell (see the module)."""
    size = np.abs(recorded)
    if not is_half(dtype):
        return TOLERANCE * np.maximum(1.0, size)
    about = torch.finfo(dtype)
    row = np.sqrt((size**2).mean(-1, keepdims=True)) if size.ndim and size.size else 0.0
    allowed = ROUNDINGS * about.eps * np.maximum(np.maximum(size, row), np.maximum(terms, about.tiny))
    return allowed


def sizes(rows: Float[ndarray, "*n d"], weight: Float[ndarray, "d m"], add: ndarray | float | None = None) -> ndarray:
    """The size of the terms of rows @ weight (+ add): the root of the sum of their squares."""
    return np.sqrt(rows**2 @ weight**2 + (0.0 if add is None else np.square(add)))


@dataclass(frozen=True)
class Written:
    """The place in the author's code that computed a step.

    Attributes:
        where: the file and the line, or that it is inside torch, and the module.
        line: the words of the line, which are shown and never run; "" where it is inside torch.
        unproved: why the step cannot be computed again in float64; None where it is.
    """

    where: Message
    line: str = ""
    unproved: Message | None = None


@dataclass(frozen=True)
class Step:
    """One step of the arithmetic.

    Attributes:
        key: names the step in tests and links.
        title, text: the operation and its reason, in words.
        formula: the formula in symbols (LaTeX).
        live: the formula with this sentence's numbers, for one component (LaTeX; long sums are elided).
        symbol: the symbol of the result (LaTeX).
        result: float64, or integers where something is numbered; a row [n] or a matrix [rows, n].
        code: the torch lines, plain PyTorch: their names are results of earlier steps or `inputs`.
        inputs: the tensors of the model and its trace that `code` reads: weights, the residual stream, the mask.
        also: further results, shown after this one, and names in `code` too.
        meaning: the name of the result if there are several; None: "the result".
        written: for a recorded model the author's line, which replaces `code`.
        proof: the comparison with the model.
        operands: the inputs in the formula.
        variable: the name in `code` that holds the result; if not said, the one that it sets last.
        contraction: the product behind the result, term by term, if it is one.
        blocked: cells that the mask blocks, for steps over the keys.
        axes: the meaning of each axis of the result.
        edited: whether a number of this step was set by hand (`vizformer.model.Edit`) instead of computed.
    """

    key: str
    title: Message
    text: Message
    formula: str
    live: str
    symbol: str
    result: Num[ndarray, "..."]
    code: str
    proof: Proof
    operands: tuple[Operand, ...] = ()
    variable: str = ""
    contraction: Contraction | None = None
    blocked: Bool[ndarray, " n"] | None = None
    axes: tuple[Axis, ...] = ("features",)
    edited: bool = False
    inputs: Mapping[str, Tensor] = field(default_factory=dict)
    also: tuple[Made, ...] = ()
    meaning: Message | None = None
    written: Written | None = None

    def __post_init__(self) -> None:
        if not self.variable and self.written is None:
            object.__setattr__(self, "variable", _SET.findall(self.code)[-1])

    @property
    def difference(self) -> float:
        return self.proof.difference

    def change_since(self, before: "Step") -> Float[ndarray, "..."]:
        """The difference between the result and that of another run; 0 for a cell that is blocked in both."""
        with np.errstate(invalid="ignore"):  # -inf - -inf
            return np.nan_to_num(self.result - before.result, nan=0.0)


def filled(text: Message, **values: object) -> Message:
    """A text of a table with its values."""
    return Message(text.text, values)


@dataclass(frozen=True)
class Maker:
    """Makes steps that share their proof and axes."""

    prefix: str  # the beginning of the steps' keys
    # proof, axes: the defaults of the steps
    proof: Proof
    axes: tuple[Axis, ...] = ("features",)
    blocked: Bool[ndarray, " n"] | None = None  # the blocked cells of steps whose axis is the keys

    def __call__(
        self,
        key: str,
        title: Message,
        text: Message,
        formula: str,
        live: str,
        symbol: str,
        result: ndarray,
        code: str,
        **more: Any,
    ) -> Step:
        given = {"proof": self.proof, "axes": self.axes, **more}
        given |= {"blocked": self.blocked} if given["axes"] == ("keys",) else {}
        return Step(f"{self.prefix}{key}", title, text, formula, live, symbol, result, code, **given)
