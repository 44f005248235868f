"""The candidates of every token in a text, cut down to as many as a reader can see at a glance."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int, UInt8
from numpy import ndarray

from vizformer.generation.streaming import End, GenerationStep

AT_A_GLANCE = 10


@dataclass(frozen=True)
class Candidates:
    """The leading candidates of every step of a text, the most probable first; the chosen token is always among them.

    Attributes:
        ids: the token of each step.
        candidates: ids [steps, count].
        before, after: their probabilities before and after penalty, temperature and cuts.
        cut: which cut removed each of them, `vizformer.generation.Cut`.
        kept: how many tokens of the vocabulary were left to draw from, in each step.
        by_hand: whether the token was given instead of chosen, in each step.
        end: why the text ends; None where it was not written to its end.
    """

    ids: list[int]
    candidates: Int[ndarray, "steps count"]
    before: Float[ndarray, "steps count"]
    after: Float[ndarray, "steps count"]
    cut: UInt8[ndarray, "steps count"]
    kept: list[int]
    by_hand: list[bool]
    end: End | None

    def first(self, count: int) -> "Candidates":
        """The candidates of the first `count` steps."""
        if len(self.ids) <= count:
            return self
        return Candidates(
            self.ids[:count],
            self.candidates[:count],
            self.before[:count],
            self.after[:count],
            self.cut[:count],
            self.kept[:count],
            self.by_hand[:count],
            "limit",
        )

    @property
    def probabilities(self) -> Float[ndarray, " steps"]:
        """The probability of each chosen token, before penalty, temperature and cuts."""
        found: ndarray = self.before[self.candidates == np.array(self.ids)[:, None]]
        return found

    @property
    def seen(self) -> list[int]:
        """The ids of all candidates, ascending."""
        return sorted({int(id) for id in self.candidates.ravel()})


def leading_candidates(steps: Iterable[GenerationStep], count: int = AT_A_GLANCE) -> Candidates:
    """Runs all steps and keeps, for each, the `count` most probable tokens and the chosen one.

    Each step is freed before the next one is computed: the distributions of a hundred tokens of GPT-2 would be 40 MB.
    A chosen token that is not among the most probable takes the place of the last one of them.

    Raises:
        ValueError: there is no step.
    """
    ids: list[int] = []
    rows: list[tuple[ndarray, ...]] = []
    kept: list[int] = []
    by_hand: list[bool] = []
    end: End | None = None
    for step in steps:
        before, after, cut = (part.cpu().numpy() for part in (step.probabilities, step.filtered, step.cut))
        best = _largest(before, count)
        if step.id not in best:
            best[-1] = step.id
        ids.append(step.id)
        rows.append((best, before[best], after[best], cut[best]))
        kept.append(int((cut == 0).sum()))
        by_hand.append(step.by_hand)
        end = step.end
    if not rows:
        raise ValueError("a text without steps has no candidates")
    candidates, probabilities, filtered, cuts = (np.stack(column) for column in zip(*rows, strict=True))
    return Candidates(ids, candidates, probabilities, filtered, cuts, kept, by_hand, end)


def _largest(values: Float[ndarray, " n"], count: int) -> Int[ndarray, " count"]:
    """The indices of the largest values, the largest first, equal ones in ascending order; without sorting all values."""
    if count >= len(values):
        return np.argsort(-values, kind="stable")
    least = np.partition(values, len(values) - count)[len(values) - count]
    reach = np.flatnonzero(values >= least)
    return reach[np.argsort(-values[reach], kind="stable")[:count]]
