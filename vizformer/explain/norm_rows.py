"""The norm of one row: mean, variance, and the result number by number, with gamma and beta set by hand."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray

from vizformer.checkpoints import AnyCheckpoint
from vizformer.explain.arrays import float64, stored
from vizformer.explain.block_rows import SublayerKind, find_block, made, norm_of, sublayers
from vizformer.explain.norms import divisor, is_rms, normalise
from vizformer.explain.step import Proof
from vizformer.messages import N_
from vizformer.model.norms import Norm
from vizformer.model.trace import Trace


@dataclass(frozen=True)
class NormNumbers:
    """The arithmetic of a norm for one row."""

    row: Float[ndarray, " d"]  # the input x
    mean: float  # the mean of the row; 0 in RMSNorm, which subtracts none
    # mean of (x - mean)^2, divided by d and not d - 1; in RMSNorm the mean of x^2; in the norm written by hand divided
    # by d - 1
    variance: float
    eps: float  # added to the variance inside the root; in the norm written by hand added to the root
    scaled: Float[ndarray, " d"]  # (x - mean) / sqrt(variance + eps)
    # gamma, beta: the factor and the summand of the scaled numbers
    gamma: Float[ndarray, " d"]
    beta: Float[ndarray, " d"]
    result: Float[ndarray, " d"]  # gamma * scaled + beta
    proof: Proof  # the result with the learned gamma and beta, against the model's own norm of this row

    @property
    def centred(self) -> Float[ndarray, " d"]:
        return self.row - self.mean

    @property
    def squares(self) -> Float[ndarray, " d"]:
        """x^2 of each number, whose mean RMSNorm takes."""
        return self.row**2

    @property
    def result_mean(self) -> float:
        return float(self.result.mean())

    @property
    def result_deviation(self) -> float:
        """The standard deviation of the result's numbers, divided by d."""
        return float(self.result.std())

    @property
    def result_length(self) -> float:
        return float(np.linalg.norm(self.result))


def find_norm_rows(
    checkpoint: AnyCheckpoint, trace: Trace, stack: str, layer: int, kind: SublayerKind
) -> tuple[Float[ndarray, "n d"], Norm]:
    """The rows that a norm of the layer reads, and the norm.

    post-norm: the sums; pre-norm: the stream.

    Raises:
        TraceError: no such layer, or no norm at that place.
        KeyError: the layer has no such sublayer.
    """
    block = find_block(checkpoint, stack, layer)
    before = {name: point for name, __, point, ___ in sublayers(block)}[kind]
    norm = norm_of(block, f"{stack}.{layer}", kind)
    if block.around(kind).before is not None:
        return float64(trace.residual(f"{stack}.{layer}.{before}")), norm
    at = f"{stack}.{layer}"
    before_rows = trace.residual(f"{at}.{before}")
    return stored(float64(before_rows) + made(checkpoint, trace, at, kind, before), before_rows.dtype), norm


def norm_numbers(
    rows: Float[ndarray, "n d"], norm: Norm, row: int, gamma: float | None = None, beta: float | None = None
) -> NormNumbers:
    """The norm of one row; `gamma` and `beta`, if given, replace all the learned ones."""
    assert norm.eps is not None
    x = rows[row]
    mean = 0.0 if is_rms(norm) else float(x.mean())
    variance = float(((x - mean) ** 2).mean())
    scaled = (x - mean) / divisor(np.array([variance]), norm)
    learned_gamma = float64(norm.weight)
    learned_beta = np.zeros(len(x)) if isinstance(norm, torch.nn.RMSNorm) else float64(norm.bias)
    used_gamma = learned_gamma if gamma is None else np.full(len(x), gamma)
    used_beta = learned_beta if beta is None else np.full(len(x), beta)
    with torch.inference_mode():
        own = norm(torch.from_numpy(x).to(norm.weight))
    proof = Proof.compare(N_("the model's own norm of this row"), normalise(x, norm), own)
    return NormNumbers(
        x, mean, variance, norm.eps, scaled, used_gamma, used_beta, used_gamma * scaled + used_beta, proof
    )


@dataclass(frozen=True)
class NeighbourEffect:
    """A sentence normalised in a batch with one neighbour, and in a batch with another."""

    # first, second: the sentence's rows, by norm ("layer", "rms", "batch"), with the first and the second neighbour
    first: dict[str, Float[ndarray, "n d"]]
    second: dict[str, Float[ndarray, "n d"]]
    moved: dict[str, float]  # the largest change of a number of the sentence, by norm
    # row_means, column_means: of the sentence's or the whole batch's normalised numbers with the first neighbour: the
    # largest |mean| of a row, and of a column over the whole batch
    row_means: dict[str, float]
    column_means: dict[str, float]


def neighbour_effect(
    sentence: Float[ndarray, "n d"], one: Float[ndarray, "m d"], other: Float[ndarray, "k d"], eps: float = 1e-5
) -> NeighbourEffect:
    """LayerNorm and RMSNorm (along a row) and BatchNorm as in training (along a column, over the batch); gamma 1, beta 0.

    Source: Ioffe & Szegedy 2015 (batch), Ba, Kiros & Hinton 2016 (layer), Zhang & Sennrich 2019 (RMS).
    """

    def over(batch: ndarray, axis: int, centred: bool) -> ndarray:
        shifted = batch - batch.mean(axis, keepdims=True) if centred else batch
        return shifted / np.sqrt((shifted**2).mean(axis, keepdims=True) + eps)

    ways = {"layer": (1, True), "rms": (1, False), "batch": (0, True)}
    n = len(sentence)
    batches = [np.concatenate([sentence, neighbour]) for neighbour in (one, other)]
    first = {name: over(batches[0], *way) for name, way in ways.items()}
    second = {name: over(batches[1], *way)[:n] for name, way in ways.items()}
    return NeighbourEffect(
        {name: rows[:n] for name, rows in first.items()},
        second,
        {name: float(np.abs(first[name][:n] - second[name]).max()) for name in ways},
        {name: float(np.abs(rows.mean(1)).max()) for name, rows in first.items()},
        {name: float(np.abs(rows.mean(0)).max()) for name, rows in first.items()},
    )
