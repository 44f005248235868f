"""Which known mistake gives the numbers of a step that departs: each is tried, and what follows from it recomputed.

A mistake takes the place of one step of a layer (`vizformer.explain.layer_steps`); the code of the steps after it, up to
the one that was given, runs on what it left.  What comes out the same as the given numbers names the mistake.
"""

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import torch
import torch.nn.functional as F
from numpy import ndarray
from torch import Tensor

from vizformer.analysis.own_steps import mistakes_of_steps
from vizformer.analysis.own_steps.first_departure import LOGITS, Steps, agrees, results, steps_of, unbatched
from vizformer.analysis.own_steps.mistakes_of_steps import Names
from vizformer.checkpoints import AnyCheckpoint
from vizformer.explain import Step
from vizformer.explain.arrays import float64, is_half
from vizformer.messages import N_, Message
from vizformer.model import Trace

MOST = 6  # that are named


def hints(
    checkpoint: AnyCheckpoint,
    trace: Trace,
    name: str,
    given: ndarray,
    agreed: tuple[str, ...],
    tolerance: float,
    steps: Steps | None = None,
) -> tuple[Message, ...]:
    """Hints about a step that differs: mistakes in it, or between it and the last step that agreed.

    A mistake that was made in a step before this one is told with the name of that step.  `steps`: as in
    `first_departure.named`.
    """
    if name == LOGITS:
        value = float64(trace.logits)
        of_logits = [said for said, wrong in mistakes_of_steps.of_logits(trace) if same(wrong, given, tolerance)]
        return tuple(of_logits) or general(given, value, tolerance)
    steps = steps or steps_of(checkpoint, trace)
    found = tried(checkpoint, trace, {name: given}, agreed, tolerance, steps)
    layer = ".".join(name.split(".")[:2])
    value = next(value for step, _, _, value in results(steps(layer), layer) if step == name)
    return tuple(said for said, _ in found[:MOST]) or general(given, value, tolerance)


def tried(
    checkpoint: AnyCheckpoint,
    trace: Trace,
    given: Mapping[str, ndarray],
    agreed: Sequence[str],
    tolerance: float,
    steps_of_layer: Steps | None = None,
) -> list[tuple[Message, bool]]:
    """The mistakes that give the first of these results of a layer, and of each whether it gives the others too.

    Args:
        given: by the names of their steps, in the order of the layer; the first departs.
        agreed: steps before that one, from the last of which on mistakes are looked for.
        steps_of_layer: `first_departure.steps_of` the trace, where others ask them too.
    """
    first, *others = given
    layer = ".".join(first.split(".")[:2])
    steps = (steps_of_layer or steps_of(checkpoint, trace))(layer)
    # its code rounds on purpose: not in float64
    if any(is_half(x.dtype) for step in steps for x in step.inputs.values()):
        return []
    places = {found: (index, variable) for index, variable, found in _places(steps, layer)}
    target = places[first][0]
    start = max((places[one][0] + 1 for one in agreed if one in places and places[one][0] < target), default=0)
    before = _names_before(steps)
    found: list[tuple[Message, bool]] = []
    for index in range(start, target + 1):
        for said, wrong in mistakes_of_steps.of_step(
            checkpoint, trace, layer, steps[index], before[index], before[index + 1]
        ):
            left = {**before[index + 1], **wrong}

            def gives(name: str, index: int = index, left: Names = left) -> bool:
                at, variable = places[name]
                reached = _follow(steps, index, at, left)
                return reached is not None and same(reached[variable], given[name], tolerance)

            if not gives(first):
                continue
            if index != target:
                said = N_("{step}: {said}", step=f"{layer}.{steps[index].key}", said=said)
            if said not in [one for one, _ in found]:
                found.append((said, all(map(gives, others))))
    return found


def _places(steps: list[Step], layer: str) -> Iterator[tuple[int, str, str]]:
    index = {step.key: number for number, step in enumerate(steps)}
    for name, step, variable, _ in results(steps, layer):
        yield index[step.key], variable, name


def same(wrong: object, given: ndarray, tolerance: float) -> bool:
    """Whether a mistake gives the numbers that were given.

    Where it leaves no number (a row of which all is blocked), there may be none in what was given, or zeros.
    """
    values = float64(wrong) if isinstance(wrong, Tensor) else np.asarray(wrong)
    own = unbatched(given, values.ndim)
    if own.shape != values.shape:
        return False
    none = np.isnan(values)
    return bool((agrees(own, values, tolerance) | (none & (np.isnan(own) | (own == 0)))).all())


def _run(step: Step, names: Names) -> None:
    """Runs the code of a step (a constant of this project) on these names, in float64."""
    inputs = {name: x.double() if x.is_floating_point() else x for name, x in step.inputs.items() if name != "residual"}
    names.update({name: x.cpu() for name, x in inputs.items()})
    with torch.no_grad():
        exec(step.code, names)


def _names_before(steps: list[Step]) -> list[Names]:
    """The names that there are before each step, and after the last one."""
    names: Names = {"torch": torch, "F": F, "math": math}
    found = []
    for index, step in enumerate(steps):
        if "residual" in step.inputs and (index == 0 or _begins(steps, index)):
            names["residual"] = step.inputs["residual"].double().cpu()
        elif _begins(steps, index) and "x" in names:
            names["residual"] = names["x"]
        found.append(dict(names))
        _run(step, names)
    return [*found, dict(names)]


def _begins(steps: list[Step], index: int) -> bool:
    """Whether a sublayer begins with this step."""
    return index > 0 and steps[index].key.split(".")[0] != steps[index - 1].key.split(".")[0]


def _follow(steps: list[Step], index: int, target: int, names: Names) -> Names | None:
    """The names after the step `target`, from those that the step `index` left; None where a shape does not fit."""
    names = dict(names)
    try:
        for following in range(index + 1, target + 1):
            if _begins(steps, following) and "x" in names:
                names["residual"] = names["x"]
            _run(steps[following], names)
    except (RuntimeError, ValueError, IndexError):
        return None
    return names


def general(given: ndarray, value: ndarray, tolerance: float) -> tuple[Message, ...]:
    """Hints that follow from the numbers alone: exchanged axes, another shape, a constant factor, another order."""
    own = unbatched(given, value.ndim).astype(np.float64)
    if value.ndim >= 2 and own.shape == np.swapaxes(value, -1, -2).shape and value.shape[-1] != value.shape[-2]:
        turned = np.swapaxes(value, -1, -2)
        if agrees(own, turned, tolerance).all():
            return (N_("These are the right numbers with the last two axes exchanged."),)
    if own.shape != value.shape:
        if own.size == value.size and value.size and agrees(np.sort(own, None), np.sort(value, None), tolerance).all():
            return (N_("These are the right numbers in another shape."),)
        return ()
    usable = np.isfinite(own) & np.isfinite(value) & (np.abs(value) > 1e-3)
    if usable.sum() > 1:  # of one number there always is such a factor
        ratio = float(np.median(own[usable] / value[usable]))
        with np.errstate(invalid="ignore"):
            scaled = np.where(np.isfinite(value), value * ratio, value)
        if abs(ratio - 1) > 1e-3 and agrees(own, scaled, tolerance * max(1.0, abs(ratio))).all():
            return (N_("Every number is {ratio} times the right one.", ratio=f"{ratio:.4g}"),)
    if value.size and agrees(np.sort(own, None), np.sort(value, None), tolerance).all():
        return (N_("These are the right numbers in another order."),)
    return ()
