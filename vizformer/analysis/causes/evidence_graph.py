"""Why this answer: tokens, heads, networks and the answer as a graph of few edges, each with its direct and total effect.

The logit of a token at a row is a sum of what each part has written into that row (`attribution.direct`), what a head has
written is a sum over the tokens that it looked at, a_j v_j W_O . g, and the row of such a token is again a sum of what was
written into it, earlier heads among them.  Patterns and the numbers by which norms divide are held, so that every edge has
an exact share of the logit, its direct effect, and at every part

    the edges that lead into it + what is not drawn = the edge that leads out of it

The largest edges are drawn, the others are summed.  Networks are not linear: they are where a way begins, as the tokens
are.  An edge from a token stands for its row, less what the heads have written there that are drawn by themselves.  What
turns a head's look is no share of the logit: for the strongest heads such an edge shows the earlier head that has written
most of the score of the key at which they look, less the mean score (`attribution.score_writers`), and behind it what that
one has this from: edges of the look, whose share is one of the score.

The total effect is measured: an edge is taken out of a run, all that comes after is computed anew, and an edge of a look
is taken out of this look alone, the way that its share went:

    total = logit - logit without the edge        (both less what the logit is compared with)

Where the total effect is smaller than the direct one, later parts make up for what is missing (self-repair).

Source: Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits" (paths, patterns held); Wang et al. 2022,
"Interpretability in the Wild" (direct and total effects); McGrath et al. 2023, "The Hydra Effect" (self-repair).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from vizformer.analysis.attribution.backward import reference
from vizformer.analysis.attribution.predictions import writable
from vizformer.analysis.attribution.terms import Against
from vizformer.analysis.causes.batches import Heard, judged, patched_logits
from vizformer.analysis.frames import frame
from vizformer.checkpoints import AnyCheckpoint
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
