"""The way through the combinations of answers: one answer at a time from the present ones, then two at a time.

All answers together are too many to try.  A better combination becomes the present one, and the way begins anew; where
none is clearly better it ends.  A combination is measured once.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from vizformer.checkpoints.tensors.questions import Question, Value

Answers = dict[str, Value]
Measured = Float[ndarray, " numbers"]


class Apart(NamedTuple):
    """How much worse one combination is than another, its standard error, and from which difference on that is clear."""

    difference: float
    error: float
    clear: float

    @property
    def is_worse(self) -> bool:
        return self.difference > self.clear

    @property
    def is_better(self) -> bool:
        return self.difference < -self.clear


class Tried(NamedTuple):
    """A combination: the answers, what was found under them, and the model that they make; None where they make none.

    Two with equal models and the same numbers are one: 4 is the root of 16, and the width of a head of 4 numbers.
    """

    answers: Answers
    measured: Measured | None
    model: object

    def is_same(self, other: "Tried | None") -> bool:
        if other is None or self.measured is None or other.measured is None or self.model != other.model:
            return False
        return np.array_equal(self.measured, other.measured)


class _EnoughError(Exception):
    """As many combinations, or as much time, as there may be."""


@dataclass
class Search:
    questions: Sequence[Question]
    # what is found under answers, beside what was found under the present ones, and the model
    measure: Callable[[Answers, Measured | None], tuple[Measured | None, object]]
    apart: Callable[[Measured, Measured], Apart]  # how much worse the first is than the second
    # most, until: how many combinations are measured, and until when (`time.monotonic`)
    most: int
    until: float
    heard: Callable[[int, int], None]  # called with how many were measured, and how many there may be
    found: dict[frozenset[tuple[str, Value]], Tried] = field(default_factory=dict)
    complete: bool = False

    def run(self, present: Answers, enough: Callable[[Measured], bool]) -> Answers:
        """The best combination on the way from `present`; two at a time are not tried where one is `enough`."""
        try:
            while (better := self._better(present, enough)) is not None:
                present = better
            self.complete = True
        except _EnoughError:
            pass
        return present

    def _better(self, present: Answers, enough: Callable[[Measured], bool]) -> Answers | None:
        self._measured(present, None)
        now = self.of(present)
        ways = [(self._apart(answers, now), answers) for answers in self._singles(present)]
        better = [(apart.difference, i) for i, (apart, __) in enumerate(ways) if apart is not None and apart.is_better]
        if better:
            return ways[min(better)[1]][1]
        if enough(now):
            return None
        for answers in self._pairs(present, now):
            apart = self._apart(answers, now)
            if apart is not None and apart.is_better:
                return answers
        return None

    def _apart(self, answers: Answers, now: Measured) -> Apart | None:
        measured = self._measured(answers, now)
        return None if measured is None else self.apart(measured, now)

    def others(self, question: Question, present: Answers) -> Iterator[Answers]:
        """The combinations that differ in one answer."""
        for value in question.open:
            if value != present.get(question.name):
                yield {**present, question.name: value}

    def _singles(self, present: Answers) -> Iterator[Answers]:
        for question in self.questions:
            if question.decides(present):
                yield from self.others(question, present)

    def _pairs(self, present: Answers, now: Measured) -> list[Answers]:
        """The combinations that differ in two answers; those first whose parts are nearest to being better."""
        far: dict[tuple[str, Value], float] = {}
        for question in self.questions:
            for answers in self.others(question, present):
                apart = self._apart(answers, now) if question.decides(present) else None
                far[question.name, answers[question.name]] = float("inf") if apart is None else apart.difference
        changes = list(far)
        pairs = [(a, b) for i, a in enumerate(changes) for b in changes[i + 1 :] if a[0] != b[0]]
        return [{**present, **dict(pair)} for pair in sorted(pairs, key=lambda pair: far[pair[0]] + far[pair[1]])]

    def of(self, answers: Answers) -> Measured:
        """What was found under these answers, which make a model."""
        measured = self.found[self.key(answers)].measured
        assert measured is not None
        return measured

    def key(self, answers: Mapping[str, Value]) -> frozenset[tuple[str, Value]]:
        """The answers that decide something."""
        return frozenset((q.name, answers[q.name]) for q in self.questions if q.decides(answers))

    def _measured(self, answers: Answers, now: Measured | None) -> Measured | None:
        key = self.key(answers)
        if key not in self.found:
            if self.found and (len(self.found) >= self.most or time.monotonic() > self.until):
                raise _EnoughError
            moot = {question.name for question in self.questions if not question.decides(answers)}
            given = {name: answer for name, answer in answers.items() if name not in moot}
            self.found[key] = Tried(answers, *self.measure(given, now))
            ways = [len(question.open) - 1 for question in self.questions]
            all_ways = 1 + sum(ways) + (sum(ways) ** 2 - sum(n * n for n in ways)) // 2
            total = min(self.most, all_ways)
            self.heard(min(len(self.found), total), total)
        return self.found[key].measured
