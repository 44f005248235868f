"""One token's row of the residual stream through a layer: a running sum, and in post-norm models its norms."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from vizformer.checkpoints import AnyCheckpoint
from vizformer.errors import TraceError
from vizformer.explain import norms
from vizformer.explain.arrays import float64, set_cells, stored
from vizformer.explain.feedforward_rows import feedforward_numbers
from vizformer.explain.norms import added_sizes, through
from vizformer.explain.proof_anchors import recorded
from vizformer.explain.site_words import in_words
from vizformer.explain.step import Proof
from vizformer.explain.sublayer import bias_of
from vizformer.model.block import Block
from vizformer.model.feedforward import FeedForward
from vizformer.model.input_check import row_at
from vizformer.model.norms import Norm
from vizformer.model.trace import Trace

SublayerKind = Literal["self", "cross", "feedforward"]


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
    module = getattr(checkpoint.model, stack, None) if stack in ("encoder", "decoder") else None
    if module is None or not 0 <= layer < len(module.layers):
        raise TraceError("There is no layer {layer!r} in this model.", layer=f"{stack}.{layer}")
    block = module.layers[layer]
    assert isinstance(block, Block)
    return block


def block_at(checkpoint: AnyCheckpoint, at: str) -> Block:
    """The module of a layer by its name, e.g. "decoder.2"."""
    stack, __, layer = at.partition(".")
    return find_block(checkpoint, stack, int(layer))


def sublayers(block: Block) -> tuple[tuple[SublayerKind, Norm | None, str, str], ...]:
    """Name, norm, and the points of the residual stream before and after, of every sublayer in order.

    Where a sublayer has two norms, this is the one before it; the attention of a first layer may have none.
    """
    if block.cross_attention is None:
        return (("self", block.self_norm, "pre", "mid"), ("feedforward", block.feedforward_norm, "mid", "post"))
    return (
        ("self", block.self_norm, "pre", "mid_self"),
        ("cross", block.cross_norm, "mid_self", "mid_cross"),
        ("feedforward", block.feedforward_norm, "mid_cross", "post"),
    )


def block_stream(checkpoint: AnyCheckpoint, trace: Trace, stack: str, layer: int, row: int) -> BlockStream:
    """Position `row` of the residual stream through a layer; each sum starts from the recorded stream before it.

    post-norm: x, x + f(x), norm(x + f(x)), ...      pre-norm: x, x + f(norm(x)), ...

    Source: Vaswani et al. 2017, section 3.1; Elhage et al. 2021 for the residual stream.
    """
    block, at = find_block(checkpoint, stack, layer), f"{stack}.{layer}"
    row = row_at(row, len(trace.residual(f"{at}.pre")))
    points = [Point("start", float64(trace.residual(f"{at}.pre")[row]))]
    proofs: dict[SublayerKind, Proof] = {}
    for kind, __, before, after in sublayers(block):
        around = block.around(kind)
        norm = around.after
        found = made(checkpoint, trace, at, kind, before, slice(row, row + 1))[0]
        kept = trace.residual(f"{at}.{after}")[row]
        x = float64(trace.residual(f"{at}.{before}")[row])
        total = stored(around.onto(x, found), kept.dtype)
        last = set_cells(trace, f"{at}.{after}", through(total, norm), (row,))
        terms = added_sizes(around, x, found)
        proofs[kind] = Proof.compare(recorded(f"{at}.{after}"), last, kept, terms=terms)
        points.append(Point(f"{kind}.sum", last if norm is None else total, found))
        if norm is not None:
            points.append(Point(f"{kind}.norm", last))
    return BlockStream(tuple(points), proofs)


def made(
    checkpoint: AnyCheckpoint, trace: Trace, at: str, kind: SublayerKind, entering: str, rows: slice = slice(None)
) -> Float[ndarray, "n d_model"]:
    """The output of a sublayer at some positions: the recorded z of the heads times W_O, or the feed-forward of each row.

    `entering` is the point of the layer `at` ("encoder.0") that the sublayer reads.
    """
    block = block_at(checkpoint, at)
    if kind == "feedforward":
        x = float64(trace.residual(f"{at}.{entering}")[rows])
        x = through(x, block.around(kind).before)
        return feedforward_numbers(x, block.feedforward, trace.residual(f"{at}.pre").dtype).out
    attention = block.self_attention if kind == "self" else block.cross_attention
    assert attention is not None
    record = trace[f"{at}.{kind}"]
    z = np.concatenate([float64(record.z(head)[rows]) for head in range(record.n_heads)], axis=1)  # [n, width]
    out: ndarray = z @ float64(attention.W_O.weight).T + bias_of(attention.W_O)
    return stored(out, record.q.dtype)


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
    before = next(before for kind, __, before, ___ in sublayers(block) if kind == "feedforward")
    return through(float64(trace.residual(f"{at}.{before}")[rows]), block.around("feedforward").before)


def norm_of(block: Block, at: str, kind: SublayerKind) -> Norm:
    """The norm of a sublayer in a layer, e.g. at="encoder.0".

    Raises:
        TraceError: the sublayer has no norm.
    """
    found = {name: norm for name, norm, __, ___ in sublayers(block)}[kind]
    if found is None and block.norm_order == "none":
        raise TraceError("The layers of this model have no norms: choose another model.")
    if found is None:
        raise TraceError(
            "Nothing is normalised before {place}: the norm of the embeddings stands just before it. Choose another "
            "sublayer or layer.",
            place=in_words(f"{at}.{kind}"),
        )
    return found


def norm_code(
    checkpoint: AnyCheckpoint, stack: str, layer: int, kind: SublayerKind, variable: str, argument: str
) -> tuple[str, dict[str, Tensor]]:
    """The torch line of a sublayer's norm, and its learned parameters."""
    found = norm_of(find_block(checkpoint, stack, layer), f"{stack}.{layer}", kind)
    return norms.code(found, variable, argument), norms.inputs(found)
