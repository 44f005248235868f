"""Why a head looks there: a score as a sum over what was written into the row that asks and into the row that is asked.

The row that a head reads is a sum of what the parts of the model before it have written: the token's row of the table, its
position, each head, each network, biases.  With the numbers by which norms divide held as they were in the forward, every
way from such a part to the query, or to the key, is linear (`attribution.direct` says the same of a logit), so

    q_i = sum over a of q_i^a        k_j = sum over b of k_j^b        score(i, j) = sum over a, b of scale q_i^a . k_j^b

and the table over a and b sums to the score.  Norms of queries and keys are held like the others, rotations are linear.
What is added to the score for the distance (ALiBi, T5) stands beside the table.

These are shares of a sum, not effects: without a part, the divisors, and what later layers do, would change too.

Source: Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits" (QK circuit); Kissane et al. 2024, "Attention
Output SAEs" for the question.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from vizformer.analysis.attribution.backward import Backward, Rows, attention_at, output_rows
from vizformer.analysis.attribution.terms import Part, Row, layer_of
from vizformer.analysis.frames import frame
from vizformer.checkpoints import AnyCheckpoint
from vizformer.errors import TraceError
from vizformer.explain.arrays import float64
from vizformer.explain.attention_numbers import HeadNumbers, head_numbers
from vizformer.explain.block_rows import find_block
from vizformer.explain.position_terms import turn
from vizformer.explain.step import Proof
from vizformer.messages import N_
from vizformer.model.block import Block
from vizformer.model.input_check import row_at
from vizformer.model.trace import Trace

Side = Literal["query", "key"]


@dataclass(frozen=True)
class Writer:
    """A part that has written into a row.

    Attributes:
        part: what it is, as of `attribution.terms.Term`; "projection_bias" at the site itself is that of W_Q or W_K, and
            "norm_bias" there that of the queries' or keys' own norm.
    """

    part: Part
    place: str
    head: int | None = None

    @property
    def layer(self) -> int | None:
        """The layer that it belongs to; None for what belongs to none."""
        return layer_of(self.place)


@dataclass(frozen=True)
class ScoreSplit:
    """A score taken apart.

    Attributes:
        queries, keys: the writers of the two rows, in the order of the data.
        table: share of each pair of them, [queries, keys].
        position: what is added for the distance, less its mean where that is taken off; 0 where nothing is.
        proof: the table's sum and `position` against the model's own score.
        asked, answered: q_i^a of each writer [queries, d_head], and k_j^b [keys, d_head], less the mean over keys,
            where that is taken off: table = scale asked answered^T.
    """

    site: str
    head: int
    query: int
    key: int
    queries: tuple[Writer, ...]
    keys: tuple[Writer, ...]
    table: Float[ndarray, "queries keys"]
    position: float
    score: float
    proof: Proof
    asked: Float[ndarray, "queries d_head"]
    answered: Float[ndarray, "keys d_head"]

    @property
    def ranked(self) -> list[tuple[Writer, Writer, float]]:
        """Pairs of writers with their shares, the largest (above or below 0) first."""
        order = np.argsort(-np.abs(self.table), axis=None, kind="stable")
        pairs = zip(*np.unravel_index(order, self.table.shape), strict=True)
        return [(self.queries[a], self.keys[b], float(self.table[a, b])) for a, b in pairs]

    def to_frame(self) -> Any:
        """A DataFrame: a row for each pair of writers, in the order of `ranked`."""
        return frame(
            {f"{side}_{name}": value for side, one in (("query", a), ("key", b)) for name, value in vars(one).items()}
            | {"share": share}
            for a, b, share in self.ranked
        )

    def of(self, side: Side) -> Float[ndarray, " writers"]:
        """The share of each writer of one side in the score, summed over all writers of the other side."""
        return self.table.sum(axis=1 if side == "query" else 0)


def score_split(
    checkpoint: AnyCheckpoint, trace: Trace, site: str, head: int, query: int, key: int, *, against_mean: bool = False
) -> ScoreSplit:
    """The score of a query and a key as a sum over pairs of writers.

    `against_mean`: less the mean score of all keys that the query may see: what softmax feels of it, since it does not
        change when the same number is added to every score of a row.

    Raises:
        TraceError: no such site, head, query or key; a norm of queries over all heads that takes off the mean.
    """
    o = head_numbers(checkpoint, trace, site, head, query)
    query, key = o.query, row_at(key, o.n_k)
    known: _Known = {}
    asked = _written(checkpoint, o, "query", query, known)
    answered = _written(checkpoint, o, "key", key, known)
    record, seen = o.record, [int(j) for j in np.flatnonzero(o.reasons == 0)]
    scores = float64(record.scores(head)[query])
    added = np.zeros(o.n_k) if record.position_bias is None else float64(record.position_bias[head, query])
    k, recorded, position = answered.vectors, float(scores[key]), float(added[key])
    if against_mean and seen:
        others = [_written(checkpoint, o, "key", j, known).vectors for j in seen]
        k = k - np.mean(others, axis=0)
        recorded, position = recorded - float(scores[seen].mean()), position - float(added[seen].mean())
    table = record.scale * asked.vectors @ k.T
    total = np.array([table.sum() + position])
    size = asked.size * answered.size * abs(record.scale)
    proof = Proof.compare(N_("the model's own score"), total, np.array([recorded]), terms=size, dtype=o.dtype)
    pair = (site, head, query, key, asked.writers, answered.writers)
    return ScoreSplit(*pair, table, position, recorded, proof, asked.vectors, k)


def writer_tokens(
    checkpoint: AnyCheckpoint, trace: Trace, split: ScoreSplit, side: Side, writer: Writer
) -> Float[ndarray, " n_k"]:
    """The share of a head's output in the score, split over the tokens that the head attended to.

        sum over the writer's keys t of a_t (v_t W_O -> q_i or k_j) . (all of the other side)

    They sum to `split.of(side)` of the writer.  A head that was one of the tokens' writers is followed in the same way, by
    the split of its own score.
    """
    g, record = writer_direction(checkpoint, trace, split, side, writer), trace[writer.place]
    v = float64(record.v[record.kv_head(writer.head or 0)])
    weights = float64(record.pattern(writer.head or 0)[split.query if side == "query" else split.key])
    return weights * (v @ (output_rows(attention_at(checkpoint, writer.place), writer.head or 0) @ g))


def writer_direction(checkpoint: AnyCheckpoint, trace: Trace, split: ScoreSplit, side: Side, writer: Writer) -> Row:
    """Along which direction g what a head has written becomes score, with all of the other side.

    Raises:
        TraceError: the writer is no head.
    """
    way, end = writer_way(checkpoint, trace, split, side, writer)
    return end @ way


def writer_way(
    checkpoint: AnyCheckpoint, trace: Trace, split: ScoreSplit, side: Side, writer: Writer
) -> tuple[Float[ndarray, "d_head d_model"], Float[ndarray, " d_head"]]:
    """The linear map from a head's output to a query or key [d_head, d_model], and from that to the score [d_head].

    Raises:
        TraceError: the writer is no head.
    """
    if writer.head is None:
        raise TraceError("Only what a head has written came from tokens.")
    o = head_numbers(checkpoint, trace, split.site, split.head, split.query)
    row = split.query if side == "query" else split.key
    way = _written(checkpoint, o, side, row, {}).directions[writer.place]  # [d_head, d_model]
    other = (split.answered if side == "query" else split.asked).sum(axis=0)
    return way, other * o.record.scale


def value_writers(
    checkpoint: AnyCheckpoint, trace: Trace, site: str, head: int, key: int, known: "_Known | None" = None
) -> "Written":
    """The value of a key as a sum over what was written into its row: v_j = sum over b of v_j^b.

    Args:
        known: keeps what several ways back have in common.

    Raises:
        TraceError: no such site, head or key; a layer without softmax.
    """
    o = head_numbers(checkpoint, trace, site, head, 0)
    return _written(checkpoint, o, "value", row_at(key, o.n_k), {} if known is None else known)


@dataclass(frozen=True)
class Written:
    """The contributions of all writers to a row, projected to its query, its key or its value."""

    writers: tuple[Writer, ...]
    vectors: Float[ndarray, "writers d_head"]  # the share of each writer; they sum to the query, key or value
    directions: dict[str, Rows]  # place -> the way from there to the query or key, [d_head, d_model]
    size: float  # of all products that were summed: what rounding is measured by


_Known = dict[str, tuple[Float[ndarray, "parts n d_model"], Row]]
"""The outputs of the sublayers in all rows, by place, computed once for all backward passes through them."""
_MOST_ROWS = 256  # texts with more rows are not kept in `_Known`


class _Ways(Backward):
    """The ways from a query or a key back to the parts that wrote its row: a direction for each of its numbers."""

    def __init__(
        self, checkpoint: AnyCheckpoint, trace: Trace, row: int, g: Float[ndarray, "rows width"], known: _Known
    ) -> None:
        super().__init__(checkpoint, trace, slice(row, row + 1), g)
        self.vectors: list[tuple[Writer, ndarray]] = []
        self.known = known

    def add(self, part: Part, place: str, products: Float[ndarray, "..."] | float, head: int | None = None) -> None:
        rows = np.broadcast_to(np.asarray(products, dtype=float), self.g.shape)
        self.vectors.append((Writer(part, place, head), rows.sum(axis=-1)))

    def squared(self, g: Float[ndarray, "_g d_model"], rows: Float[ndarray, "*_parts d_model"]) -> float:
        return float((rows**2 @ (g**2).T).sum())

    def written(self, block: Block, at: str, kind: str) -> tuple[Float[ndarray, "parts rows d_model"], Row]:
        n = len(self.trace.residual(f"{at}.pre"))
        if n > _MOST_ROWS:
            return super().written(block, at, kind)
        if f"{at}.{kind}" not in self.known:
            row, self.rows = self.rows, slice(0, n)
            self.known[f"{at}.{kind}"] = super().written(block, at, kind)
            self.rows = row
        parts, bias = self.known[f"{at}.{kind}"]
        return parts[:, self.rows], bias

    def before(self, site: str) -> None:
        """Carries g back from the input of an attention sublayer to the embedding tables."""
        stack, number, kind = site.split(".")
        block, at = find_block(self.checkpoint, stack, int(number)), f"{stack}.{number}"
        norm = block.around("cross" if kind == "cross" else "self").before
        point = f"{at}.mid_self" if kind == "cross" else f"{at}.pre"
        if norm is not None:
            self.through(norm, self.row(point), site)
        if kind == "cross":
            self.sublayers(block, at, ("self",))
        for layer in reversed(range(int(number))):
            self.layer(find_block(self.checkpoint, stack, layer), f"{stack}.{layer}")
        self.embedding("encoder" if stack == "encoder" else "decoder")


def _written(
    checkpoint: AnyCheckpoint, o: HeadNumbers, side: Side | Literal["value"], row: int, known: _Known
) -> Written:
    """The share of every writer of a row in its query, key or value, by a backward pass from each of its numbers."""
    name = side[0]
    weight, *bias = (float64(tensor) for tensor in o.columns(name).values())  # [d_model, d_head]
    ways = _Ways(checkpoint, o.all.trace, row, np.eye(weight.shape[1]), known)
    if side != "value":  # no norm and no rotation follows values
        if o.all.rotation is not None:
            ways.g = turn(ways.g, o.all.rotation.angles[row]).T
        norm = o.site.attention.q_norm if side == "query" else o.site.attention.k_norm
        if norm is not None:
            projected = o.after_step(name)[None] if side == "query" else o.after_step(name)[row : row + 1]
            ways.through(norm, projected, o.site.name)
    for one in bias:
        ways.add("projection_bias", o.site.name, ways.g * one)
    ways.g = ways.g @ weight.T
    if side != "query" and o.site.is_cross:
        ways.stack("encoder")
    else:
        ways.before(o.site.name)
    writers, vectors = zip(*reversed(ways.vectors), strict=True)
    return Written(writers, np.stack(vectors), ways.directions, float(np.sqrt(ways.squares)))
