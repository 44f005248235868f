"""Computations of the page Check your own: what can be handed in is cached, what was handed in is kept by nobody else."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from vizformer.analysis.own_steps import first_departure, submitted_steps
from vizformer.analysis.own_steps.first_departure import (
    LONGEST,
    TOLERANCE,
    TOLERANCES,
    Comparison,
    Named,
    Picture,
    Steps,
    compare,
    expected,
    length,
    picture,
    steps_of,
)
from vizformer.analysis.own_steps.known_mistakes import hints
from vizformer.analysis.own_steps.submitted_steps import MAX_BYTES, MAX_TEXT_BYTES, SUFFIXES, read_file, read_text
from vizformer.messages import Message
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject


@dataclass(frozen=True)
class Checked:
    """The findings about submitted steps; of the numbers themselves they hold one picture at most."""

    subject: Subject
    tolerance: float
    comparison: Comparison
    hints: tuple[Message, ...]
    picture: Picture | None  # its differences; None where the shapes differ, or everything agrees


def check_size(size: int) -> None:
    """Raises TraceError where files of so many bytes together are more than is read."""
    submitted_steps.check_size(size)


def read(files: list[tuple[str, bytes]], text: str, name: str) -> dict[str, np.ndarray]:
    found: dict[str, np.ndarray] = {}
    for title, content in files:
        found |= read_file(title, content)
    if text.strip():
        found |= read_text(text, name)
    return found


def check(subject: Subject, given: Mapping[str, np.ndarray], tolerance: float, steps: Steps | None = None) -> Checked:
    checkpoint, trace = subject.checkpoint, subject.trace
    steps = steps or steps_of(checkpoint, trace)
    comparison = compare(checkpoint, trace, given, tolerance, steps)
    first = comparison.first
    if first is None:
        return Checked(subject, tolerance, comparison, (), None)
    values = given[first.name]
    right = expected(checkpoint, trace, first.name, steps)
    drawn = picture(values, right) if right is not None and first.problem != "shape" else None
    said = hints(checkpoint, trace, first.name, values, comparison.agreed, tolerance, steps)
    return Checked(subject, tolerance, comparison, said, drawn)


@cached
def named_and_example(subject: Subject) -> tuple[tuple[Named, ...], Checked]:
    """The steps that can be handed in, and a program with one mistake: it joins the heads of a layer with reshape alone."""
    checkpoint, trace = subject.checkpoint, subject.trace
    steps, layer = steps_of(checkpoint, trace), f"{next(iter(trace.tokens))}.0"
    given: dict[str, np.ndarray] = {}
    for name, *_, value in first_departure.results(steps(layer), layer):
        if name.startswith(f"{layer}.self."):
            given[name] = value
        if name == f"{layer}.self.concat":
            break
    heads = given[f"{layer}.self.z"]  # [n_heads, n, d_head]
    given[f"{layer}.self.concat"] = heads.reshape(heads.shape[1], -1)
    return first_departure.named(checkpoint, trace, steps), check(subject, given, usual_tolerance(), steps)


def too_long(subject: Subject) -> tuple[int, int] | None:
    """How many tokens the text has and how many it may have, where it has more; else None."""
    n = length(subject.trace)
    return (n, LONGEST) if n > LONGEST else None


def tolerances() -> tuple[float, ...]:
    return TOLERANCES


def usual_tolerance() -> float:
    return TOLERANCE


def limits() -> tuple[int, int]:
    """Bytes of a file, and of a text."""
    return MAX_BYTES, MAX_TEXT_BYTES


def suffixes() -> tuple[str, ...]:
    return SUFFIXES
