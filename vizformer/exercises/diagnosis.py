"""Where results of a student's function depart from the right ones, and which known mistakes give exactly her numbers.

Mistakes in the arithmetic of a layer are those of the page Check your own (`vizformer.analysis.other_programs`), each told
there once; the others are slips of an exercise: its own solution with other text in one of its lines.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy import ndarray
from torch import Tensor

from vizformer.analysis.other_programs.first_departure import TOLERANCE, agrees, differences
from vizformer.analysis.other_programs.known_mistakes import MOST, general, same, tried
from vizformer.exercises.task import Case, Function, Task, slipped
from vizformer.messages import N_, Message


@dataclass(frozen=True)
class Departure:
    name: str
    given: ndarray
    right: ndarray
    index: tuple[int, ...] | None = None  # of the first that departs; None where the shapes differ
    off: int = 0  # how many do

    @property
    def largest(self) -> float:
        """|given - right|, the largest of all; inf where a number is none."""
        return float(np.nan_to_num(differences(self.given, self.right), nan=np.inf).max(initial=0.0))


class Diagnosis(NamedTuple):
    known: tuple[Message, ...] = ()  # the mistakes that give exactly its numbers
    elsewhere: Message | None = None  # of which case, where it is not the first that departs
    alike: tuple[Message, ...] = ()  # what can be said without a known mistake
    partly: bool = False  # whether they give one result, and not all that was given


def numbers(value: Any) -> ndarray:
    """The numbers of a tensor, of a list or of one number.

    Raises:
        TypeError, ValueError, RuntimeError: it holds none.
    """
    if isinstance(value, Tensor):
        found: ndarray = value.detach().double().cpu().numpy()
        return found
    if isinstance(value, list | tuple):
        value = [x.item() if isinstance(x, Tensor) else x for x in value]
    return np.asarray(value, dtype=np.float64)


def departure_of(name: str, given: ndarray, right: ndarray) -> Departure | None:
    """Where a result departs; None where it agrees."""
    if given.shape != right.shape:
        return Departure(name, given, right)
    off = ~agrees(given, right, TOLERANCE)
    if not off.any():
        return None
    return Departure(name, given, right, tuple(int(i) for i in np.argwhere(off)[0]), int(off.sum()))


def diagnosed(task: Task, functions: tuple[Function, ...], cases: list[Case]) -> Diagnosis:
    """Which mistakes give the numbers of functions that depart in the first of these cases, or in one after it."""
    # few numbers may agree by chance
    twice = ([_arrays(task, functions, case) for _ in range(2)] for case in cases[:3])
    if not all(_all_same(first, second) for first, second in twice):
        said = N_("It gives different numbers each time: something in it is random, such as dropout.")
        return Diagnosis(alike=(said,))
    slips = {slip: slipped(task.solutions, slip) for slip in task.slips}
    alike: tuple[Message, ...] = ()
    for number, case in enumerate(cases):
        right, given = (_arrays(task, some, case) for some in (task.solutions, functions))
        off = next((n for n in right if n in given and departure_of(n, given[n], right[n]) is not None), None)
        if off is None:
            continue
        close = [slip for slip in slips if _same(_arrays(task, slips[slip], case).get(off), given[off])]
        own = [_arrays(task, functions, one) for one in cases] if close else []
        exact = [
            slip
            for slip in close
            if all(_all_same(_arrays(task, slips[slip], one), x) for one, x in zip(cases, own, strict=True))
        ]
        layer = _of_layer(case, off, given, right)
        whole = [said for said, gives_all in layer if gives_all]
        # what gives all that was given is named before what gives the first result alone
        found = [*(task.slips[slip] for slip in exact), *whole]
        partly = not found
        found = found or [*(task.slips[slip] for slip in close), *(said for said, _ in layer)]
        if found:
            different = tuple(said for i, said in enumerate(found) if said not in found[:i])
            return Diagnosis(different[:MOST], case.title if number else None, partly=partly)
        alike = alike or general(given[off], right[off], TOLERANCE)
    return Diagnosis(alike=alike)


def _arrays(task: Task, functions: tuple[Function, ...], case: Case) -> dict[str, ndarray]:
    """The results of functions that may do anything; none where they fail."""
    try:
        return {name: numbers(value) for name, value in task.results(functions, case.arguments()).items()}
    except Exception:
        return {}


def _same(made: ndarray | None, given: ndarray) -> bool:
    return made is not None and same(made, given, TOLERANCE)


def _all_same(made: dict[str, ndarray], own: dict[str, ndarray]) -> bool:
    return made.keys() == own.keys() and all(_same(made[name], own[name]) for name in own)


def _of_layer(
    case: Case, first: str, given: dict[str, ndarray], right: dict[str, ndarray]
) -> list[tuple[Message, bool]]:
    """The mistakes of a layer's steps that give this result, and whether they give those after it too."""
    if first not in case.places or case.reading is None:
        return []
    names = [*right]
    there = [name for name in names[names.index(first) :] if name in case.places and name in given]
    brought = {}
    for name in there:
        place, value = case.places[name], given[name]
        fits = value.shape == right[name].shape
        brought[place.step] = place.brought(torch.from_numpy(value)).numpy() if fits else value
    checkpoint, trace = case.reading.checkpoint, case.reading.trace
    return tried(checkpoint, trace, brought, (case.places[first].agreed,), TOLERANCE)
