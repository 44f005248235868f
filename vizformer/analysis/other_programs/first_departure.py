"""Numbers that somebody's own program computed, step by step against a trace: the first step that departs.

The steps are those of `vizformer.explain.layer_steps`, by the names `<layer>.<step>`, e.g. "encoder.0.self.weights"; where
a step has several results, each has its own name: "encoder.0.self.heads.q", "....k", "....v".  The last is "logits".
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from vizformer.checkpoints import AnyCheckpoint
from vizformer.errors import TraceError
from vizformer.explain import Step, layer_steps
from vizformer.explain.arrays import float64
from vizformer.messages import N_, Message
from vizformer.model import Trace

TOLERANCE = 1e-4  # of max(1, |x|): PyTorch prints four digits
TOLERANCES = (1e-5, 1e-4, 1e-3, 1e-2)
LONGEST = 128  # tokens of a text whose steps are worked out a layer at a time
LOGITS = "logits"
_LEFT_OUT = ("packed", "mean", "variance")  # parts of other steps
_BLOCKED = -1e8  # what programs write in place of -inf, or below it

Problem = Literal["", "shape", "nan"]
Steps = Callable[[str], list[Step]]  # of a layer, by its name


@dataclass(frozen=True)
class Named:
    """A step that can be compared: its name, what it is, its shape."""

    name: str
    title: Message
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Compared:
    """A step that was given, against the trace: its shape there, and the shape that was given.

    problem: "shape" where that is another one, "nan" where numbers are none that should be some.
    difference: the largest |given - computed|; inf where there is a problem.
    departs: whether that is more than the tolerance allows somewhere.
    """

    name: str
    title: Message
    shape: tuple[int, ...]
    given: tuple[int, ...]
    problem: Problem
    difference: float
    departs: bool


@dataclass(frozen=True)
class Comparison:
    """All steps that were given and are known, in the order in which a forward computes them, and the names of no step."""

    steps: tuple[Compared, ...]
    unknown: tuple[str, ...]

    @property
    def first(self) -> Compared | None:
        return next((step for step in self.steps if step.departs), None)

    @property
    def agreed(self) -> tuple[str, ...]:
        first = self.first
        return tuple(step.name for step in self.steps[: len(self.steps) if first is None else self.steps.index(first)])


def results(steps: list[Step], layer: str) -> Iterator[tuple[str, Step, str, Float[ndarray, "..."]]]:
    """Name, step, variable and value of everything that can be compared in a layer."""
    for step in steps:
        kind, _, part = step.key.rpartition(".")
        if part in _LEFT_OUT or (kind == "cross" and part in ("q", "k", "v")):
            continue
        if part == "input" and not layer.endswith(".0"):
            continue  # what the layer before it left
        several = ((step.variable, step.result), *((made.variable, made.tensor.value) for made in step.also))
        for variable, value in several:
            name = f"{layer}.{step.key}" + (f".{variable}" if step.also else "")
            yield name, step, variable, value


def steps_of(checkpoint: AnyCheckpoint, trace: Trace) -> Steps:
    """The steps of each layer of a trace, worked out when it is asked for, and once: for all that is asked of them here."""
    return cache(partial(layer_steps, checkpoint, trace))


def layers(trace: Trace) -> tuple[str, ...]:
    """The layers of a trace, in the order in which they ran."""
    return tuple(name.removesuffix(".pre") for name in trace.residuals if name.endswith(".pre"))


def named(checkpoint: AnyCheckpoint, trace: Trace, steps: Steps | None = None) -> tuple[Named, ...]:
    """Every step that can be compared; the layers of a stack have the same.

    Args:
        steps: `steps_of` the trace, where others ask them too.

    Raises:
        TraceError: a text of more than `LONGEST` tokens.
    """
    check_length(trace)
    steps = steps or steps_of(checkpoint, trace)
    found: list[Named] = []
    first: dict[str, list[tuple[str, Step, ndarray]]] = {}
    for layer in layers(trace):
        stack, _, number = layer.rpartition(".")
        if stack not in first:
            first[stack] = [
                (name.removeprefix(f"{layer}."), step, value) for name, step, _, value in results(steps(layer), layer)
            ]
        for part, step, value in first[stack]:
            if part != "input" or number == "0":
                found.append(Named(f"{layer}.{part}", step.title, value.shape))
    return (*found, Named(LOGITS, N_("Logits"), tuple(trace.logits.shape)))


def length(trace: Trace) -> int:
    """The tokens that the stack reads which reads most."""
    return max(len(tokens) for tokens in trace.tokens.values())


def check_length(trace: Trace) -> None:
    """Raises TraceError where a stack reads more than `LONGEST` tokens."""
    longest = length(trace)
    if longest > LONGEST:
        raise TraceError(
            "The text has {n} tokens; steps are compared for at most {limit}. Choose a shorter one.",
            n=longest,
            limit=LONGEST,
        )


def expected(
    checkpoint: AnyCheckpoint, trace: Trace, name: str, steps: Steps | None = None
) -> Float[ndarray, "..."] | None:
    """The array of the trace for a step; None where it has no such step.  `steps`: as in `named`."""
    if name == LOGITS:
        return float64(trace.logits)
    layer = ".".join(name.split(".")[:2])
    if layer not in layers(trace):
        return None
    made = (steps or steps_of(checkpoint, trace))(layer)
    return next((value for found, _, _, value in results(made, layer) if found == name), None)


def compare(
    checkpoint: AnyCheckpoint,
    trace: Trace,
    given: Mapping[str, ndarray],
    tolerance: float = TOLERANCE,
    steps: Steps | None = None,
) -> Comparison:
    """Compares what was given, by the names of `named`, with a trace.

    A step departs where |given - computed| > tolerance max(1, |computed|) in a cell.  Leading dimensions of 1 (a batch)
    are left out; -inf and what programs write in its place (-1e9) are the same.  `steps`: as in `named`.

    Raises:
        TraceError: a text of more than `LONGEST` tokens.
    """
    check_length(trace)
    steps = steps or steps_of(checkpoint, trace)
    wanted = {".".join(name.split(".")[:2]) for name in given}
    found: list[Compared] = []
    for layer in layers(trace):
        if layer not in wanted:
            continue
        for name, step, _, value in results(steps(layer), layer):
            if name in given:
                found.append(_compared(name, step.title, value, given[name], tolerance))
    if LOGITS in given:
        found.append(_compared(LOGITS, N_("Logits"), float64(trace.logits), given[LOGITS], tolerance))
    known = {step.name for step in found}
    return Comparison(tuple(found), tuple(name for name in given if name not in known))


def _compared(name: str, title: Message, value: ndarray, given: ndarray, tolerance: float) -> Compared:
    own = unbatched(given, value.ndim)
    if own.shape != value.shape:
        return Compared(name, title, value.shape, given.shape, "shape", float("inf"), departs=True)
    difference = differences(own, value)
    if np.isnan(difference).any():
        return Compared(name, title, value.shape, given.shape, "nan", float("inf"), departs=True)
    departs = not bool(agrees(own, value, tolerance).all())
    return Compared(name, title, value.shape, given.shape, "", float(difference.max(initial=0.0)), departs)


def unbatched(given: ndarray, ndim: int) -> ndarray:
    """Without the leading dimensions of 1 that are too many."""
    while given.ndim > ndim and given.shape[0] == 1:
        given = given[0]
    return given


def differences(given: ndarray, value: ndarray) -> Float[ndarray, "..."]:
    """|given - value| for each number; 0 where both are blocked (-inf)."""
    own, right = _blocked(given), _blocked(value)
    with np.errstate(invalid="ignore"):
        apart = np.abs(own - right)
    return np.where(np.isneginf(own) & np.isneginf(right), 0.0, apart)


def agrees(given: ndarray, value: ndarray, tolerance: float) -> Bool[ndarray, "..."]:
    """Cell by cell, whether two tensors of the same shape are the same within a tolerance."""
    size = np.where(np.isfinite(value), np.abs(value), 0.0)
    with np.errstate(invalid="ignore"):
        found: ndarray = np.asarray(differences(given, value) <= tolerance * np.maximum(1.0, size))
    return found


def _blocked(values: ndarray) -> ndarray:
    wide = values.astype(np.float64)
    return np.where(wide <= _BLOCKED, -np.inf, wide)


@dataclass(frozen=True)
class Picture:
    """Where a step departs: one matrix of differences, cut to what can be drawn."""

    values: Float[ndarray, "rows columns"]  # given - computed, with infinities as NaN
    head: int | None  # the head with the largest difference, where there are heads
    first_column: int  # the column of the model that is drawn first
    worst: tuple[int, int]  # row and column (of the model) of the largest difference


def picture(given: ndarray, value: ndarray, columns: int = 48) -> Picture:
    """The differences of a step whose shapes agree: of the head, and around the column, in which they are largest."""
    own = unbatched(given, value.ndim).astype(np.float64)
    sizes = np.nan_to_num(differences(own, value), nan=np.inf)
    with np.errstate(invalid="ignore"):
        apart = np.where(sizes == 0, 0.0, own - value)
    head = None
    while apart.ndim > 2:
        head = int(sizes.reshape(len(sizes), -1).max(axis=1).argmax())
        apart, sizes = apart[head], sizes[head]
    apart, sizes = np.atleast_2d(apart), np.atleast_2d(sizes)
    row, column = (int(index) for index in np.unravel_index(sizes.argmax(), sizes.shape))
    start = max(0, min(column - columns // 2, apart.shape[1] - columns))
    values = apart[:, start : start + columns]
    return Picture(np.where(np.isfinite(values), values, np.nan), head, start, (row, column))
