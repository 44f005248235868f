"""One token's row of the residual stream through a layer: a running sum, and the norm of one row number by number."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from vizformer.checkpoints import AnyCheckpoint
from vizformer.errors import TraceError
from vizformer.explain import norms
from vizformer.explain.arrays import float64, stored
from vizformer.explain.feedforward_rows import feedforward_numbers
from vizformer.explain.norms import divisor, is_rms, normalise
from vizformer.explain.step import Proof
from vizformer.explain.sublayer import Sublayer, SublayerKind, bias_of, points, sublayer_at
from vizformer.messages import N_
from vizformer.model.block import Block
from vizformer.model.feedforward import FeedForward
from vizformer.model.input_check import row_at
from vizformer.model.norms import Norm
from vizformer.model.trace import Trace


@dataclass(frozen=True)
class Point:
    """The row at one point of the layer.

    Attributes:
        name: "start", "<sublayer>.sum" after an addition, "<sublayer>.norm" after the norm that follows it (post-norm).
        row: the numbers.
        added: the row that the sublayer added here; None at the start and after a norm.
    """

    name: str
    row: Float[ndarray, " d_model"]
    added: Float[ndarray, " d_model"] | None = None

    @property
    def added_length(self) -> float:
        """The Euclidean norm of `added`; 0 if nothing was added."""
        return 0.0 if self.added is None else float(np.linalg.norm(self.added))


class SumLength(NamedTuple):
    """|x + f|^2 = |x|^2 + 2 x . f + |f|^2: the two squares, the dot product, and the length of the sum."""

    first: float
    product: float
    second: float
    length: float


@dataclass(frozen=True)
class BlockStream:
    """The row of one token through a layer.

    Attributes:
        points: the points in order; the last one is the input of the next layer.
        proofs: by the name of each sublayer, the row after it against the recorded residual stream.
    """

    points: tuple[Point, ...]
    proofs: dict[SublayerKind, Proof]

    @property
    def rows(self) -> Float[ndarray, "points d_model"]:
        return np.stack([point.row for point in self.points])

    @property
    def worst(self) -> Proof:
        """The proof with the largest difference; the last one if all are exact."""
        return max(reversed(self.proofs.values()), key=lambda proof: (not proof.holds, proof.difference))

    @property
    def attention_added(self) -> Float[ndarray, " d_model"]:
        """The row that the self-attention, the first sublayer, added."""
        found = self.points[1].added
        assert found is not None
        return found

    @property
    def first_sum(self) -> SumLength:
        """The length of x + f, where f is the self-attention's output."""
        x, f = self.points[0].row, self.attention_added
        first, product, second = float(x @ x), float(x @ f), float(f @ f)
        return SumLength(first, product, second, float(np.sqrt(first + 2 * product + second)))

    @property
    def lengths(self) -> Float[ndarray, " points"]:
        """The Euclidean norm of the row at each point."""
        found: ndarray = np.linalg.norm(self.rows, axis=1)
        return found

    @property
    def to_start(self) -> Float[ndarray, " points"]:
        """The cosine between the row at each point and the first row."""
        return cosines(self.rows, self.rows[0])

    @property
    def to_end(self) -> Float[ndarray, " points"]:
        """The cosine between the row at each point and the last row."""
        return cosines(self.rows, self.rows[-1])


def cosines(rows: Float[ndarray, "n d"], other: Float[ndarray, " d"]) -> Float[ndarray, " n"]:
    """x . y / (|x| |y|) for each row x and y = `other`; 0 if one of them is 0."""
    sizes = np.linalg.norm(rows, axis=1) * np.linalg.norm(other)
    found: ndarray = np.divide(rows @ other, sizes, out=np.zeros(len(rows)), where=sizes > 0)
    return found


def find_block(checkpoint: AnyCheckpoint, stack: str, layer: int) -> Block:
    """The module of layer `layer` in `stack`."""
    return block_at(checkpoint, f"{stack}.{layer}")


def block_at(checkpoint: AnyCheckpoint, at: str) -> Block:
    """The module of a layer by its name, e.g. "decoder.2"."""
    stack, __, layer = at.partition(".")
    module = getattr(checkpoint.model, stack, None) if stack in ("encoder", "decoder") else None
    if module is None or not layer.isdecimal() or int(layer) >= len(module.layers):
        raise TraceError("There is no layer {layer!r} in this model.", layer=at)
    block = module.layers[int(layer)]
    assert isinstance(block, Block)
    return block


def sublayers(block: Block) -> tuple[tuple[SublayerKind, Norm | None, str, str], ...]:
    """Name, norm (None in a model without), and the points of the residual stream before and after, of every sublayer
    in order.
    """
    norms_ = {"self": block.self_norm, "cross": block.cross_norm, "feedforward": block.feedforward_norm}
    return tuple((kind, norms_[kind], *names) for kind, names in points(block).items())


def block_stream(checkpoint: AnyCheckpoint, trace: Trace, stack: str, layer: int, row: int) -> BlockStream:
    """Position `row` of the residual stream through a layer; each sum starts from the recorded stream before it.

    post-norm: x, x + f(x), norm(x + f(x)), ...      pre-norm: x, x + f(norm(x)), ...

    Source: Vaswani et al. 2017, section 3.1; Elhage et al. 2021 for the residual stream.
    """
    block, at = find_block(checkpoint, stack, layer), f"{stack}.{layer}"
    row = row_at(row, len(trace.residual(f"{at}.pre")))
    stream = [Point("start", float64(trace.residual(f"{at}.pre")[row]))]
    proofs: dict[SublayerKind, Proof] = {}
    for kind in points(block):
        place = sublayer_at(trace, block, at, kind, slice(row, row + 1))
        out, norm = made(trace, block, at, place), place.around.after
        proofs[kind], last = place.proof(out), place.left(out)[0]
        stream.append(Point(f"{kind}.sum", last if norm is None else place.added(out)[0], out[0]))
        if norm is not None:
            stream.append(Point(f"{kind}.norm", last))
    return BlockStream(tuple(stream), proofs)


def made(trace: Trace, block: Block, layer: str, place: Sublayer) -> Float[ndarray, "n d_model"]:
    """The output of a sublayer: the recorded z of the heads times W_O, or the feed-forward of each row."""
    if place.kind == "feedforward":
        return feedforward_numbers(place.read, block.feedforward, place.dtype).out
    attention = block.self_attention if place.kind == "self" else block.cross_attention
    assert attention is not None
    record = trace[f"{layer}.{place.kind}"]
    heads = [float64(record.z(head)[place.queries]) for head in range(record.n_heads)]
    out: ndarray = np.concatenate(heads, axis=1) @ float64(attention.W_O.weight).T + bias_of(attention.W_O)
    return stored(out, place.dtype)


@dataclass(frozen=True)
class StackStream:
    """The row of one token at every recorded point of a stack.

    Attributes:
        names: e.g. "0.pre", "0.mid", "final", as the trace calls them, without the stack.
        lengths: |x| there.
        to_start, to_end: the cosines with the first row and with the last one.
    """

    names: tuple[str, ...]
    lengths: Float[ndarray, " points"]
    to_start: Float[ndarray, " points"]
    to_end: Float[ndarray, " points"]

    @property
    def last_layer(self) -> int:
        """The point that the last layer ends with; a norm of the whole stack may follow."""
        return max(index for index, name in enumerate(self.names) if name.endswith(".post"))


def stack_stream(trace: Trace, stack: str, row: int) -> StackStream:
    """Position `row` of the residual stream at every point of a stack that the trace has recorded."""
    names = [name for name in trace.residuals if name.startswith(f"{stack}.")]
    # The end of a layer and the start of the next one are the same point.
    names = [name for name in names if not name.endswith(".pre") or name == f"{stack}.0.pre"]
    rows = np.stack([float64(trace.residual(name)[row]) for name in names])
    short = tuple(name.removeprefix(f"{stack}.") for name in names)
    return StackStream(short, np.linalg.norm(rows, axis=1), cosines(rows, rows[0]), cosines(rows, rows[-1]))


def feedforward_input(
    checkpoint: AnyCheckpoint, trace: Trace, stack: str, layer: int
) -> tuple[Float[ndarray, "n d_model"], FeedForward]:
    """The rows that the feed-forward network of a layer reads (pre-norm: after its norm), and the network."""
    block, at = find_block(checkpoint, stack, layer), f"{stack}.{layer}"
    return network_input(block, trace, at), block.feedforward


def network_input(block: Block, trace: Trace, at: str, rows: slice = slice(None)) -> Float[ndarray, "n d_model"]:
    """The rows that the feed-forward of a layer, "decoder.2", reads."""
    return sublayer_at(trace, block, at, "feedforward", rows).read


def norm_of(block: Block, kind: SublayerKind) -> Norm:
    """The norm of a sublayer.

    Raises:
        TraceError: the layers of the model have no norms.
    """
    found = {name: norm for name, norm, __, ___ in sublayers(block)}[kind]
    if found is None:
        raise TraceError("The layers of this model have no norms: choose another model.")
    return found


def norm_code(
    checkpoint: AnyCheckpoint, stack: str, layer: int, kind: SublayerKind, variable: str, argument: str
) -> tuple[str, dict[str, Tensor]]:
    """The torch line of a sublayer's norm, and its learned parameters."""
    found = norm_of(find_block(checkpoint, stack, layer), kind)
    return norms.code(found, variable, argument), norms.inputs(found)


# The norm of one row: mean, variance, and the result number by number, with gamma and beta set by hand.


@dataclass(frozen=True)
class NormNumbers:
    """The arithmetic of a norm for one row."""

    row: Float[ndarray, " d"]  # the input x
    mean: float  # the mean of the row; 0 in RMSNorm, which subtracts none
    variance: float  # the mean of (x - mean)^2, divided by d and not d - 1; in RMSNorm the mean of x^2
    eps: float  # added to the variance inside the root
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

    post-norm: the sums x + f(x), or f(x) without residual connections; pre-norm: the stream x.

    Raises:
        TraceError: no such layer, or the layers have no norms.
        KeyError: the layer has no such sublayer.
    """
    block, at = find_block(checkpoint, stack, layer), f"{stack}.{layer}"
    place, norm = sublayer_at(trace, block, at, kind), norm_of(block, kind)
    return place.x if place.around.before is not None else place.added(made(trace, block, at, place)), norm


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
