"""What the bundled small trainings come to: means over seeds, losses against widths."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Float32
from numpy import ndarray

from vizformer.analysis.heads.induction import HeadScores, head_scores, repeated_tokens
from vizformer.analysis.heads.maps import HeadMaps, Kind, head_maps, kinds
from vizformer.checkpoints import AnyCheckpoint
from vizformer.text import Token
from vizformer.training.live import Plan
from vizformer.training.tasks import BOS, EOS, MARKS, ids_of


@dataclass(frozen=True)
class TaskAnswer:
    own: str
    right: tuple[str, ...]  # the right answer's symbols, with the end mark where there is one
    probabilities: Float32[ndarray, "symbols places"]  # of every symbol at every place of the right answer
    symbols: tuple[str, ...]
    maps: dict[Kind, HeadMaps]  # all heads while the model reads the question and the right answer
    tokens: dict[str, tuple[Token, ...]]  # what stands at the rows and columns of the maps, by stack


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


# What a model that was trained on a task makes of it: one question, its positions, and its heads on repeated tokens.
def task_answer(checkpoint: AnyCheckpoint, plan: Plan, text: str) -> TaskAnswer:
    """The question that a text is, read with its right answer (one forward), and answered by the model itself.

    Raises:
        VizformerError: a text that is no question of the task.
    """
    task = plan.on
    example = task.read(text)
    read, write = ids_of(task, example, plan.architecture)
    asked = write[:-1]
    if plan.architecture == "encoder-decoder":
        trace = checkpoint.trace(ids=read, target_ids=[task.vocabulary.index(BOS), *asked])
        prompt = example.question
    else:
        trace = checkpoint.trace(ids=[*read, *asked])
        prompt = example.question + task.separator
    # The last rows predict the answer: the one before its first symbol, and so on.
    p = trace.logits[-len(write) :].double().softmax(-1).float().numpy()  # [places, vocab_size]
    shown = (*task.symbols, EOS) if task.ends else tuple(task.symbols)
    rows = [task.vocabulary.index(symbol) for symbol in shown]
    return TaskAnswer(
        own=checkpoint.generate(prompt, max_new=len(write) + (4 if task.ends else 0)).text,
        right=tuple(task.vocabulary[id] for id in write),
        probabilities=np.ascontiguousarray(p[:, rows].T),
        symbols=shown,
        maps={kind: head_maps(trace, kind) for kind in kinds(trace)},
        tokens=trace.tokens,
    )


def position_rows(checkpoint: AnyCheckpoint, plan: Plan) -> Float32[ndarray, "n d_model"] | None:
    """The vectors that are added at the positions that occur in training; None where none are."""
    found = checkpoint.model.positions(plan.longest)
    return None if found is None else found.detach().numpy()


def repetition_scores(checkpoint: AnyCheckpoint, plan: Plan) -> HeadScores:
    """How much each head is a previous-token head or an induction head, on random symbols of the task that come twice:
    8 sequences of 10, each after the start mark.
    """
    symbols = torch.arange(len(MARKS), len(plan.on.vocabulary))
    ids = repeated_tokens(symbols, sequences=8, period=10, seed=1)
    bos = torch.full((len(ids), 1), MARKS.index(BOS))
    return head_scores(checkpoint.model, torch.cat([bos, ids], dim=1), 10, start=1)
