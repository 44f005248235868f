"""What the bundled small trainings of the lesson Training come to: seed by seed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray


@dataclass(frozen=True)
class LeftOutCurves:
    """The losses of trainings with one thing left out.

    Attributes:
        curves: of every seed.
        learned: of how many seeds the last loss is less than a quarter of that of guessing.
    """

    curves: Float[ndarray, "seeds points"]
    learned: int

    @property
    def last(self) -> Float[ndarray, " seeds"]:
        found: ndarray = self.curves[:, -1]
        return found


def left_out_curves(notes: Mapping[str, Any]) -> dict[str, LeftOutCurves]:
    """Of the notes that `vizformer.training.left_out.measure` makes: what is left out -> its trainings."""
    return {
        name: LeftOutCurves(np.array(curves), sum(curve[-1] < notes["guessing"] / 4 for curve in curves))
        for name, curves in notes["loss"].items()
    }
