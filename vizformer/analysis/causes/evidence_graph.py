"""Why this answer: tokens, heads, networks and the answer as a graph of few edges, each with its direct and total effect.

The logit of a token at a row is a sum of what each part has written into that row (`attribution.direct`), what a head has
written is a sum over the tokens that it looked at, a_j v_j W_O . g, and the row of such a token is again a sum of what was
written into it, earlier heads among them.  Patterns and the numbers by which norms divide are held, so that every edge has
an exact share of the logit, its direct effect, and at every part

    the edges that lead into it + what is not drawn = the edge that leads out of it

The largest edges are drawn, the others are summed.  Networks are not linear: they are where a way begins, as the tokens
are.  An edge from a token stands for its row, less what the heads have written there that are drawn by themselves.  What
turns a head's look is no share of the logit: for the strongest heads such an edge shows the earlier head that has written
most of the score of the key at which they look, less the mean score (`scores.score_writers`), and behind it what that
one has this from: edges of the look, whose share is one of the score.

The total effect is measured: an edge is taken out of a run, all that comes after is computed anew, and an edge of a look
is taken out of this look alone, the way that its share went:

    total = logit - logit without the edge        (both less what the logit is compared with)

Where the total effect is smaller than the direct one, later parts make up for what is missing (self-repair).

Source: Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits" (paths, patterns held); Wang et al. 2022,
"Interpretability in the Wild" (direct and total effects); McGrath et al. 2023, "The Hydra Effect" (self-repair).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from vizformer.analysis.attribution.backward import attention_at, output_rows, reference
from vizformer.analysis.attribution.direct import logit_attribution
from vizformer.analysis.attribution.lens import predicting_stack
from vizformer.analysis.attribution.terms import Against, Row
from vizformer.analysis.causes.batches import Heard, judged, patched_logits
from vizformer.analysis.frames import frame
from vizformer.analysis.one_forward.predictions import writable
from vizformer.analysis.scores.score_writers import Side, Writer, score_split, value_writers, writer_way
from vizformer.checkpoints import AnyCheckpoint
from vizformer.errors import TraceError
from vizformer.explain.arrays import float64
from vizformer.explain.step import Proof
from vizformer.model import Patch, Trace

Way = Literal["value", "query", "key"]


class Node(NamedTuple):
    """A node of the graph: a token, a head, a feed-forward network, or the answer."""

    # "token" is the row of a token before any head has written into it
    part: Literal["token", "head", "feedforward", "answer"]
    place: str  # the site of a head, "decoder.2.feedforward", of a token its stack, of the answer "logit"
    row: int  # position in the stack
    head: int | None = None  # of a head


@dataclass(frozen=True)
class EvidenceEdge:
    """An edge of the graph.

    Attributes:
        way: "value" carries a share of the logit; "query" and "key" turn the look of a head.
        direct: the share of the logit; of an edge of a look the share of the score less its mean, along this look.
        score: of a look the whole score less its mean; else None.
        patch: what takes the edge out of a run.
    """

    writer: Node
    reader: Node
    way: Way
    direct: float
    score: float | None = None
    patch: Patch = field(kw_only=True, repr=False, compare=False)


@dataclass(frozen=True)
class Evidence:
    """The graph; see the module.

    Attributes:
        position, token, against, logit: as of `LogitAttribution`.
        edges: those that are drawn, the ways of values first, and of these the largest.
        others: of each part that is entered, what enters it by edges that are not drawn.
        proof: the sum of what is drawn and not drawn, where the ways begin, against the model's own logit.
    """

    position: int
    token: int
    against: Against
    logit: float
    edges: tuple[EvidenceEdge, ...]
    others: dict[Node, float]
    proof: Proof

    @property
    def answer(self) -> Node:
        return Node("answer", "logit", self.position)

    def into(self, node: Node) -> tuple[EvidenceEdge, ...]:
        """The drawn edges that carry values into a part."""
        return tuple(edge for edge in self.edges if edge.reader == node and edge.way == "value")

    def to_frame(self, removed: "Sequence[Removed]" = ()) -> Any:
        """A DataFrame: a row for each edge, then one for what is not drawn.

        Args:
            removed: of `taken_out`; then with the total effect, and the probability that is left.
        """
        rows: list[dict[str, Any]] = [
            {"writer": _name(edge.writer), "reader": _name(edge.reader), "way": edge.way, "direct": edge.direct}
            for edge in self.edges
        ]
        for row, one in zip(rows, removed, strict=False):
            row |= {"total": one.total, "probability": one.probability}
        rows += [
            {"writer": "others", "reader": _name(node), "way": "value", "direct": value}
            for node, value in self.others.items()
        ]
        return frame(rows)


class Removed(NamedTuple):
    """The answer after one edge has been removed.

    Attributes:
        total: by how much its logit, less what it is compared with, falls.
        probability: of the answer, then.
        best, best_probability: the most probable token, then.
    """

    total: float
    probability: float
    best: int
    best_probability: float


@torch.inference_mode()
def taken_out(
    checkpoint: AnyCheckpoint, trace: Trace, found: Evidence, *, heard: Heard | None = None
) -> tuple[Removed, ...]:
    """Measures the answer without each edge, one edge at a time, in batches."""

    def judge(logits: Float[Tensor, "b vocab_size"]) -> Float[ndarray, "4 b"]:
        p = logits.double().softmax(-1)
        best = writable(checkpoint, p).argmax(-1)
        own = [float(row[found.token] - reference(row, found.against)) for row in float64(logits)]
        at_best = p.gather(1, best[:, None])[:, 0]
        return np.stack([np.array(own), *(x.double().cpu().numpy() for x in (p[:, found.token], best, at_best))])

    runs = [[edge.patch] for edge in found.edges]
    values = judged(patched_logits(checkpoint, trace, runs, found.position, heard), len(runs), judge)
    return tuple(Removed(found.logit - own, p, int(best), at_best) for own, p, best, at_best in values.T.tolist())


def _name(node: Node) -> str:
    return f"{node.place}{'' if node.head is None else f'.{node.head}'}@{node.row}"


# The search for the largest edges of an answer's graph (`evidence_graph`): from the logit back, the largest edge first.

MOST = 12
LEAST = 0.02  # of the largest edge: what is smaller is not drawn
SPLIT = 0.2  # of what is taken from a token's row: a head that has written as much of it is drawn by itself
LOOKED, LOOK = 2, 0.25  # heads whose look is followed, and the share of the score that a drawn writer has
CHAIN, MOSTLY = 3, 0.5  # edges of a look, and the share of it that each of them has
LONGEST = 64  # tokens: to follow a look asks for a way back from each
Ways = Float[ndarray, "..."]
"""A direction [d], or one for each component of a vector, as columns; or a portion of a vector along them."""
FEW = 16  # tokens of a head that are told apart; the others are summed


def answer_evidence(
    checkpoint: AnyCheckpoint, trace: Trace, position: int, token: int, *, against: Against = "mean", most: int = MOST
) -> Evidence:
    """The largest edges of the graph whose end is one token's logit at one position.

    Args:
        against: as of `logit_attribution`.
        most: edges that are drawn.

    Raises:
        TraceError: no such position or token; not one edge is wanted.
    """
    if most < 1:
        raise TraceError("At least one edge is to be drawn.")
    search = _AnswerSearch(checkpoint, trace, position, token, against)
    room = max(1, most - CHAIN * LOOKED) if search.looks_are_followed else most
    search.draw(room)
    looks = search.looks()[: most - len(search.drawn)]
    search.draw(most - len(looks))
    return search.found(looks)


def _read(site: str) -> str:
    """The stack whose tokens the heads of a site look at."""
    return "encoder" if site.endswith("cross") else site.split(".")[0]


@dataclass
class _Open:
    """An edge while it is looked for: what it carries, what takes it out, and along which direction its writer wrote."""

    patch: Patch
    value: float = 0.0
    g: Ways | float = 0.0  # of a search that ends in a vector a direction for each of its numbers, as columns
    portion: Ways | float = 0.0  # what it carries of that vector


_Key = tuple[Node, Node]


@dataclass
class _Split:
    """A value of a token, without what heads have written that are drawn by themselves; and these with what they wrote."""

    rest: Row
    # heads, their vectors [d_head], and the directions in which they wrote [d_head, d_model]
    pieces: list[tuple[Node, Row, Row]]


class _Search:
    """Follows the largest edges back, from where some begin that wait.

    Args:
        least: of the largest edge, what is still drawn.
        end: where the ways end in a vector, a query or a key: what its numbers become of the score.
    """

    def __init__(self, checkpoint: AnyCheckpoint, trace: Trace, least: float, end: Ways | float = 1.0) -> None:
        self.checkpoint, self.trace, self.least, self.end = checkpoint, trace, least, end
        self.waiting, self.drawn, self.others = dict[_Key, _Open](), dict[_Key, _Open](), dict[Node, float]()
        # of a head: along which direction what it mixes becomes the end, [d_head] or [d_head, numbers of the end]
        self.own = dict[Node, Ways]()
        self.split = dict[_Key, _Split]()
        self.known = dict[Any, Any]()

    def add(
        self,
        writer: Node,
        reader: Node,
        value: float,
        patch: Patch,
        portion: Ways | float = 0.0,
        *,
        g: Ways | float = 0.0,
    ) -> None:
        """Adds `value` to an edge, and passes `g` on to the edges into its writer where the edge is drawn already."""
        key = (writer, reader)
        edge = self.drawn.get(key) or self.waiting.setdefault(key, _Open(patch))
        edge.value, edge.g, edge.portion = edge.value + value, edge.g + g, edge.portion + portion
        if key in self.drawn and writer.part == "head":
            self.enter(writer, g)

    def draw(self, most: int) -> None:
        """Draws the largest edges until there are so many."""
        while self.waiting and len(self.drawn) < most:
            key = max(self.waiting, key=lambda one: abs(self.waiting[one].value))
            edge = self.waiting[key]
            largest = max([abs(edge.value), *(abs(one.value) for one in self.drawn.values())])
            if abs(edge.value) < self.least * largest:
                return
            writer, reader = key
            if writer.part == "token" and reader.part == "head" and key not in self.split and self.parts(key, edge):
                continue  # (some of it goes by edges of its own now)
            self.drawn[key] = self.waiting.pop(key)
            if writer.part == "head":
                self.enter(writer, edge.g)

    def settle(self) -> None:
        """Returns the shares of heads whose own edges are not drawn to the edges of the tokens."""
        for (token, head), split in self.split.items():
            if (edge := self.drawn.get((token, head))) is None:
                continue
            rest = split.rest
            for writer, vector, _ in split.pieces:
                if (more := self.waiting.pop((writer, head), None)) is not None:
                    rest, edge.value, edge.portion = rest + vector, edge.value + more.value, edge.portion + more.portion
            edge.patch = self.piece(head, float(self.pattern(head)[token.row]), rest, self.own[head])[1]

    def enter(self, head: Node, g: Ways | float) -> None:
        """The edges into a head, by the tokens that it looked at: a_j v_j W_O . g."""
        record, at = self.trace[head.place], head.head or 0
        own = output_rows(attention_at(self.checkpoint, head.place), at) @ g  # [d_head]
        self.own[head] = self.own.get(head, 0.0) + own
        weights, v = self.pattern(head), float64(record.v[record.kv_head(at)])
        shares = weights * np.dot(v @ own, self.end)
        order = np.argsort(-np.abs(shares), kind="stable").tolist()
        drawn = {key.row for key, reader in (*self.drawn, *self.split) if reader == head}
        self.others.setdefault(head, 0.0)
        for place, j in enumerate(order):
            token = Node("token", _read(head.place), j)
            if place >= FEW and j not in drawn:
                self.others[head] += float(shares[j])
                continue
            split = self.split.get((token, head), _Split(v[j], []))
            for writer, vector, direction in split.pieces:
                self.add(writer, head, *self.piece(head, weights[j], vector, own), g=weights[j] * direction.T @ own)
            self.add(token, head, *self.piece(head, weights[j], split.rest, own))

    def piece(self, head: Node, weight: float, vector: Row, own: Ways) -> tuple[float, Patch, Ways | float]:
        """The contribution of one part of a value vector at the end, the patch that subtracts it from z, and the portion."""
        taken, portion = torch.tensor(-weight * vector), weight * (vector @ own)
        return (
            float(np.dot(portion, self.end)),
            Patch(f"{head.place}.z", (head.head, head.row), taken, adds=True),
            portion,
        )

    def pattern(self, head: Node) -> Row:
        """The attention weights of a head in its row."""
        record, at = self.trace[head.place], head.head or 0
        return float64(record.of_queries(head.row, head.row + 1).pattern(at)[0])

    def parts(self, key: _Key, edge: _Open) -> bool:
        """Gives edges of their own to the heads that wrote much of a token's row; True where there are any."""
        token, head = key
        record = self.trace[head.place]
        split = self.split[key] = _Split(float64(record.v[record.kv_head(head.head or 0), token.row]), [])
        written = value_writers(self.checkpoint, self.trace, head.place, head.head or 0, token.row, self.known)
        weight, own, rest = float(self.pattern(head)[token.row]), self.own[head], np.zeros_like(split.rest)
        for writer, vector in zip(written.writers, written.vectors, strict=True):
            value, patch, portion = self.piece(head, weight, vector, own)
            if writer.head is None or abs(value) < SPLIT * abs(edge.value):
                rest = rest + vector
                continue
            node, direction = Node("head", writer.place, token.row, writer.head), written.directions[writer.place]
            split.pieces.append((node, vector, direction))
            self.add(node, head, value, patch, portion, g=weight * direction.T @ own)
        if split.pieces:
            split.rest = rest
            value, patch, portion = self.piece(head, weight, rest, own)
            self.waiting[key] = _Open(patch, value, portion=portion)
        return bool(split.pieces)


class _AnswerSearch(_Search):
    """The search from a logit back to the tokens, with the heads that determine the attention along the way."""

    def __init__(self, checkpoint: AnyCheckpoint, trace: Trace, position: int, token: int, against: Against) -> None:
        super().__init__(checkpoint, trace, LEAST)
        self.terms = logit_attribution(checkpoint, trace, position, token, against=against)
        self.answer = Node("answer", "logit", self.terms.position)
        self.others[self.answer] = 0.0
        self.begin()

    @property
    def looks_are_followed(self) -> bool:
        return max(map(len, self.trace.tokens.values())) <= LONGEST

    def begin(self) -> None:
        """Adds the edges into the answer, one for each term of the logit that is of a part or a token; others are summed."""
        row, stack = self.terms.position, predicting_stack(self.checkpoint)
        for term in self.terms.terms:
            if term.part == "head":
                node, at = Node("head", term.place, row, term.head), Patch(f"{term.place}.z", (term.head, row))
                self.add(node, self.answer, term.value, at, g=self.terms.directions[term.place])
            elif term.part in ("feedforward", "feedforward_bias"):
                node = Node("feedforward", term.place, row)
                self.add(node, self.answer, term.value, Patch(term.place, (row,)))
            elif term.part in ("token", "position", "segment"):
                at = Patch(f"{stack}.0.pre", (row,))
                self.add(Node("token", stack, row), self.answer, term.value, at)
            else:
                self.others[self.answer] += term.value

    def looks(self) -> list[EvidenceEdge]:
        """The edges that raise the scores of the strongest heads: from an earlier head, and from the token it read."""
        heads = [(abs(edge.value), key[0]) for key, edge in self.drawn.items() if key[0].part == "head"]
        found, least = list[EvidenceEdge](), 5 * LEAST * max((value for value, _ in heads), default=0.0)
        for value, head in sorted(heads, key=lambda one: -one[0])[:LOOKED] if self.looks_are_followed else []:
            if value >= least:
                found += self.look(head)
        return found

    def look(self, head: Node) -> list[EvidenceEdge]:
        record, at, weights = self.trace[head.place], head.head or 0, self.pattern(head)
        v = float64(record.v[record.kv_head(at)])
        key = int(np.abs(weights * (v @ self.own[head])).argmax())
        split = score_split(self.checkpoint, self.trace, head.place, at, head.row, key, against_mean=True)
        sides: tuple[Side, ...] = ("query", "key")
        writers: list[tuple[float, Side, Writer]] = [
            (float(share), side, writer)
            for side in sides
            for share, writer in zip(split.of(side), split.queries if side == "query" else split.keys, strict=True)
            if writer.head is not None
        ]
        share, side, writer = max(writers, key=lambda one: one[0], default=(0.0, "query", Writer("head", "")))
        if share <= 0.0 or share < LOOK * abs(split.score):
            return []
        node = Node("head", writer.place, head.row if side == "query" else key, writer.head)
        onwards, end = writer_way(self.checkpoint, self.trace, split, side, writer)
        whole = self.written_by(head, side, key, node)
        way = _Search(self.checkpoint, self.trace, MOSTLY, end)
        way.add(node, head, share, self.turned(head, side, key, whole), whole, g=onwards.T)
        way.draw(CHAIN)
        way.settle()
        return [
            EvidenceEdge(*ends, side, edge.value, split.score, patch=self.turned(head, side, key, edge.portion))
            for ends, edge in way.drawn.items()
        ]

    def written_by(self, head: Node, side: Side, key: int, writer: Node) -> Row:
        """The contribution of an earlier head to the query, or to the key, of a head [d_head]."""
        split = score_split(self.checkpoint, self.trace, head.place, head.head or 0, head.row, key)
        writers, vectors = (split.queries, split.asked) if side == "query" else (split.keys, split.answered)
        at = next(i for i, one in enumerate(writers) if (one.place, one.head) == (writer.place, writer.head))
        return vectors[at]

    def turned(self, head: Node, side: Side, key: int, portion: Ways | float) -> Patch:
        """The patch with a head's row of weights recomputed after a portion is subtracted from its query or key."""
        record, number = self.trace[head.place].of_queries(head.row, head.row + 1), head.head or 0
        changed = (record.q if side == "query" else record.k).clone()
        where = (number, 0) if side == "query" else (record.kv_head(number), key)
        changed[where] -= torch.as_tensor(portion).to(changed)
        record = replace(record, q=changed) if side == "query" else replace(record, k=changed)
        return Patch(f"{head.place}.pattern", (number, head.row), record.pattern(number)[0])

    def found(self, looks: list[EvidenceEdge]) -> Evidence:
        """The graph, and the proof: what is where ways begin, drawn or not, sums to the logit.

        Of two edges between the same parts the one that carries a value is drawn, or the look that was followed first.
        """
        self.settle()
        found = {(edge.writer, edge.reader): edge for edge in reversed(looks)}
        looks = [edge for edge in looks if found[edge.writer, edge.reader] is edge]
        looks = [edge for edge in looks if (edge.writer, edge.reader) not in self.drawn]
        for (_, reader), edge in self.waiting.items():
            self.others[reader] += edge.value
        edges = [EvidenceEdge(*key, "value", edge.value, patch=edge.patch) for key, edge in self.drawn.items()]
        edges.sort(key=lambda edge: -abs(edge.direct))
        begun = [edge.direct for edge in edges if edge.writer.part != "head"]
        total, terms = sum(begun) + sum(self.others.values()), self.terms
        difference = abs(total - terms.logit)
        proof = replace(terms.proof, difference=difference, holds=bool(difference <= terms.allowed))
        ids = terms.position, terms.token, terms.against, terms.logit
        return Evidence(*ids, (*edges, *looks), self.others, proof)
