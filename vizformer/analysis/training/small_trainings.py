"""What the bundled small trainings come to: means over seeds, losses against widths."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray


@dataclass(frozen=True)
class SmoothingMarks:
    """Trainings with one label smoothing; all measured on held-out sentences, without smoothing."""

    steps: tuple[int, ...]  # after which the held-out sentences were looked at
    perplexities: Float[ndarray, " steps"]  # e^loss there, the loss being the mean over the seeds
    sure: float
    right: float  # how often that token is the right one
    bleus: tuple[float, ...]

    @property
    def perplexity(self) -> float:
        return float(self.perplexities[-1])

    @property
    def bleu(self) -> float:
        return float(np.mean(self.bleus))


def by_smoothing(notes: Mapping[str, Any]) -> dict[float, SmoothingMarks]:
    """Reads the trainings for each value of label smoothing from the notes of `recipes.smoothing.measure`."""
    found = {}
    for smoothing in sorted({run["smoothing"] for run in notes["runs"]}):
        runs = [run for run in notes["runs"] if run["smoothing"] == smoothing]
        losses = np.array([[one["loss"] for one in run["curve"]] for run in runs])  # [seeds, steps]
        last = [run["last"] for run in runs]
        found[smoothing] = SmoothingMarks(
            tuple(one["step"] for one in runs[0]["curve"]),
            np.exp(losses.mean(0)),
            float(np.mean([one["sure"] for one in last])),
            float(np.mean([one["right"] for one in last])),
            tuple(one["bleu"] for one in last),
        )
    return found


@dataclass(frozen=True)
class LeftOutCurves:
    """The losses of trainings with one thing left out."""

    curves: Float[ndarray, "seeds points"]
    learned: int  # of how many seeds the last loss is less than a quarter of that of guessing

    @property
    def last(self) -> Float[ndarray, " seeds"]:
        return self.curves[:, -1]


def left_out_curves(notes: Mapping[str, Any]) -> dict[str, LeftOutCurves]:
    """Reads the trainings for each omitted part from the notes of `recipes.omissions.measure`."""
    return {
        name: LeftOutCurves(np.array(curves), sum(curve[-1] < notes["guessing"] / 4 for curve in curves))
        for name, curves in notes["loss"].items()
    }


@dataclass(frozen=True)
class WidthLosses:
    """A model with d_ff = `ratio` times d_model, trained once for each seed."""

    layers: int
    ratio: int
    parameters: int
    losses: tuple[float, ...]  # on held-out letters, nats a letter, seed by seed
    read: float
    seconds: float

    @property
    def matrices(self) -> int:
        """Weights of its layers in d^2: L (4 + 2 r), of W_Q, W_K, W_V, W_O, W_1 and W_2."""
        return self.layers * (4 + 2 * self.ratio)

    @property
    def mean(self) -> float:
        return float(np.mean(self.losses))

    @property
    def spread(self) -> float:
        """The difference between the worst and the best seed."""
        return max(self.losses) - min(self.losses)


def width_losses(notes: Mapping[str, Any]) -> dict[str, tuple[WidthLosses, ...]]:
    """Reads from the notes of `recipes.feed_forward_width.measure` the models as deep as the first one ("depth"), and
    those with as many weights in their layers as one of these and another depth ("size"), each by their width.
    """
    found = [
        WidthLosses(
            one["layers"],
            one["ratio"],
            one["parameters"],
            tuple(run["held_out"] for run in one["runs"]),
            float(np.mean([run["read"] for run in one["runs"]])),
            float(np.mean([run["seconds"] for run in one["runs"]])),
        )
        for one in notes["models"]
    ]
    depth = [one for one in found if one.layers == found[0].layers]
    size = {one.matrices for one in found if one not in depth}
    series = {"depth": depth, "size": [one for one in found if one.matrices in size]}
    return {name: tuple(sorted(rows, key=lambda one: one.ratio)) for name, rows in series.items()}
