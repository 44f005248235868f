"""The logit lens: what the model would predict if it ended after each of its layers.

    lens(l, i) = softmax(head(norm_final(x_l[i])))        x_l: the residual stream after layer l

x_0 are the embeddings; after the last layer it is the model's own prediction, which the proof compares.

Source: nostalgebraist 2020, "interpreting GPT: the logit lens".
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy import ndarray
from torch import Tensor

from vizformer.analysis.frames import frame
from vizformer.analysis.one_forward.predictions import choices, writable
from vizformer.checkpoints import AnyCheckpoint
from vizformer.checkpoints.recorded.checkpoint import RecordedCheckpoint
from vizformer.errors import TraceError
from vizformer.explain.arrays import float64, is_half
from vizformer.explain.step import Proof, sizes
from vizformer.messages import N_, Message
from vizformer.model import Transformer
from vizformer.model.block import Stack
from vizformer.model.input_check import row_at, token_id
from vizformer.model.trace import Trace

AT_ONCE = 2**24  # logits that are held at a time


@dataclass(frozen=True)
class LogitLens:
    """The predictions of some positions after every layer.

    Attributes:
        points: where in the residual stream: "decoder.0.pre" (the embeddings), "decoder.0.post", ...
        targets: the id of the token that each position is asked for.
        top: the ids of the most probable tokens that the model may write, the first one first.
        probabilities: theirs.
        entropy: of the whole distribution, in nats: -sum_t p_t ln p_t.
        rank: of the target: 1 + the number of tokens with a larger logit.
        tied: how many tokens share this rank, as their logits are equal; 1: the target has it alone.
        first_tied: how many share the first one.
        proof: the lens after the last layer against the model's logits.
    """

    points: tuple[str, ...]
    positions: tuple[int, ...]
    targets: Int[ndarray, " positions"]
    top: Int[ndarray, "points positions count"]
    probabilities: Float[ndarray, "points positions count"]
    entropy: Float[ndarray, "points positions"]
    rank: Int[ndarray, "points positions"]
    tied: Int[ndarray, "points positions"]
    first_tied: Int[ndarray, "points positions"]
    target_probability: Float[ndarray, "points positions"]
    proof: Proof

    def _alone(self, column: int) -> Bool[ndarray, " points"]:
        """At which points the target is the most probable token of a column, and no other one is as probable."""
        return (self.rank[:, column] == 1) & (self.tied[:, column] == 1)

    def to_frame(self) -> Any:
        """A DataFrame: a row for each position at each point, `best` the id of the most probable token."""
        return frame(
            {
                "position": position,
                "point": point,
                "target": self.targets[column],
                "rank": self.rank[at, column],
                "probability": self.target_probability[at, column],
                "best": self.top[at, column, 0],
                "best_probability": self.probabilities[at, column, 0],
                "entropy": self.entropy[at, column],
            }
            for column, position in enumerate(self.positions)
            for at, point in enumerate(self.points)
        )

    def settled(self, column: int) -> int | None:
        """The first point from which on the target alone is first in a column, to the end; None: never."""
        first = self._alone(column)
        if not first[-1]:
            return None
        others = np.flatnonzero(~first)
        return int(others[-1]) + 1 if len(others) else 0

    def appears(self, column: int) -> int | None:
        """The first point at which the target alone is first in a column at all; None: nowhere."""
        found = np.flatnonzero(self._alone(column))
        return int(found[0]) if len(found) else None


def logit_lens(
    checkpoint: AnyCheckpoint,
    trace: Trace,
    positions: Sequence[int] | None = None,
    *,
    targets: Sequence[int] | None = None,
    count: int = 5,
) -> LogitLens:
    """Reads the residual stream after every layer through the model's own final norm and head.

    `targets`: the id that each position is asked for; None: `right_tokens`.

    Raises:
        TraceError: no such position or token; as many targets as positions are needed.
    """
    n, vocab = trace.logits.shape
    chosen = tuple(range(n)) if positions is None else tuple(row_at(position, n) for position in positions)
    asked = [right_tokens(checkpoint, trace)[position] for position in chosen] if targets is None else targets
    asked = [token_id(token, vocab) for token in asked]
    if len(asked) != len(chosen):
        raise TraceError(
            "The lens needs a token from 0 to {last} for each of {n} positions.", last=vocab - 1, n=len(chosen)
        )
    names = points(checkpoint)
    wanted = torch.tensor(asked, device=trace.logits.device).repeat(len(names))
    count = min(count, vocab)
    found: list[tuple[Tensor, ...]] = []
    at, last, rows = 0, trace.logits[:0], None
    if isinstance(checkpoint, RecordedCheckpoint):
        parts = _recorded(checkpoint, trace, names, chosen)
    else:
        rows = torch.stack([trace.residual(name)[list(chosen)] for name in names])  # [points, positions, ...]
        parts = _own(checkpoint.model, rows)
    for logits in parts:
        found.append(_read(checkpoint, logits.double(), wanted[at : at + len(logits)], count))
        at, last = at + len(logits), torch.cat([last, logits])[-len(chosen) :]
    shape = (len(names), len(chosen))
    top, probabilities, entropy, rank, tied, first_tied, own = (
        torch.cat([part[index] for part in found]).cpu().numpy() for index in range(7)
    )
    return LogitLens(
        names,
        chosen,
        np.asarray(asked, dtype=np.int64),
        top.reshape(*shape, count),
        probabilities.reshape(*shape, count),
        entropy.reshape(shape),
        rank.reshape(shape),
        tied.reshape(shape),
        first_tied.reshape(shape),
        own.reshape(shape),
        _proof(checkpoint, trace, None if rows is None else rows[-1], last, list(chosen)),
    )


def _own(model: Transformer, rows: Tensor) -> Iterator[Tensor]:
    """Logits of our own Transformer, some rows at a time, point after point."""
    flat, step = rows.flatten(0, 1), max(1, AT_ONCE // model.config.vocab_size)
    with torch.inference_mode():
        for first in range(0, len(flat), step):
            yield through(model, flat[first : first + step])


def _recorded(
    checkpoint: RecordedCheckpoint, trace: Trace, names: Sequence[str], chosen: Sequence[int]
) -> Iterator[Tensor]:
    """Logits by the calls that a module makes after its last block, point after point."""
    run = checkpoint.again(trace)
    for name in names:
        rows = _recorded_rows(checkpoint, trace, name)
        logits = run.logits_of(rows)
        if len(logits) == len(rows):
            yield logits[list(chosen)]
        else:  # its last row alone: each row is read in that place
            yield torch.cat([run.logits_of(torch.cat([rows[:-1], rows[one][None]]))[-1:] for one in chosen])


def _recorded_rows(checkpoint: AnyCheckpoint, trace: Trace, point: str) -> Float[Tensor, "n d_model"]:
    stack, layer, at = point.split(".")
    after = int(layer) + (at == "post")
    last = after == checkpoint.shape.layers_of(stack)
    return trace.residual(f"{stack}.final" if last else f"{stack}.{after}.pre")


def predicting_stack(checkpoint: AnyCheckpoint) -> Literal["encoder", "decoder"]:
    """The stack whose rows become logits."""
    return "decoder" if checkpoint.shape.decoder_heads else "encoder"


def points(checkpoint: AnyCheckpoint) -> tuple[str, ...]:
    """The points of the residual stream that the lens reads: the embeddings, and what every layer ends with."""
    stack = predicting_stack(checkpoint)
    return (f"{stack}.0.pre", *(f"{stack}.{layer}.post" for layer in range(checkpoint.shape.layers_of(stack))))


def final_stack(model: Transformer) -> Stack:
    """The stack whose rows become logits."""
    stack = model.encoder if model.decoder is None else model.decoder
    assert stack is not None
    return stack


def through(model: Transformer, x: Float[Tensor, "*n d_model"]) -> Float[Tensor, "*n vocab_size"]:
    """Rows of the residual stream as logits, as if the last layer had written them."""
    return model.logits(final_stack(model).end(x))


def right_tokens(checkpoint: AnyCheckpoint, trace: Trace) -> tuple[int, ...]:
    """The id that every row of the predicting stack is asked for.

    In a decoder the token that follows; after the last one the model's own choice.  In an encoder the token that stands
    there; under [MASK] the model's own choice.
    """
    if checkpoint.shape.decoder_heads:
        return tuple(choice.next.id for choice in choices(checkpoint, trace))
    own, mask = trace.logits.argmax(-1).tolist(), checkpoint.shape.mask_id
    tokens = trace.tokens["encoder"]
    return tuple(best if token.id == mask else token.id for token, best in zip(tokens, own, strict=True))


def what_is_inexact(checkpoint: AnyCheckpoint) -> Iterator[Message]:
    """Names what the lens assumes of this model that does not hold exactly, one sentence each."""
    if not checkpoint.is_own:
        yield N_(
            "The calls that this model makes after its last block run again on the stream of every layer. They were learned "
            "for what the last one writes: of earlier rows the lens is a reading, not what the model computes."
        )
        return
    config = checkpoint.model.config
    if final_stack(checkpoint.model).final_norm is not None:
        yield N_(
            "Every row goes through the norm after the last layer, whose weights were learned for the rows that the "
            "last layer writes: of earlier rows the lens is a reading, not what the model computes."
        )
    elif config.norm_order == "post":
        yield N_(
            "This model has no norm after the last layer: every layer ends with its own. The head reads rows that "
            "other norms have scaled than the one that it was trained with, so that before the last layer the lens is "
            "a reading, not what the model computes."
        )
    else:
        yield N_(
            "This model has no norm after the last layer: the head reads the rows as they are. Before the last layer "
            "that is a reading, not what the model computes."
        )
    if config.head == "transform":
        yield N_("The head for hidden words is a layer and a norm of its own; the lens puts every row through both.")


def _read(
    checkpoint: AnyCheckpoint, logits: Float[Tensor, "n vocab"], wanted: Int[Tensor, " n"], count: int
) -> tuple[Tensor, ...]:
    """The fields of `LogitLens` from `top` on, without the targets, for some rows."""
    logs = torch.log_softmax(logits, dim=-1)
    p = logs.exp()
    logits = writable(checkpoint, logits)
    top = logits.topk(count, dim=-1).indices
    entropy = -torch.where(p > 0, p * logs, 0.0).sum(-1)
    own = logits.gather(1, wanted[:, None])
    rank, tied = 1 + (logits > own).sum(-1), (logits == own).sum(-1)
    first_tied = (logits == logits.amax(-1, keepdim=True)).sum(-1)
    return top, p.gather(1, top), entropy, rank, tied, first_tied, p.gather(1, wanted[:, None])[:, 0]


def _proof(checkpoint: AnyCheckpoint, trace: Trace, rows: Tensor | None, last: Tensor, chosen: list[int]) -> Proof:
    recorded = trace.logits[chosen]
    terms: ndarray | float = 0.0
    if is_half(recorded.dtype) and rows is not None:
        model = checkpoint.model
        table = model.embedding.weight if model.unembedding is None else model.unembedding.weight
        ends = rows if rows.dim() == 2 else trace.residual(f"{predicting_stack(checkpoint)}.final")[chosen]
        terms = sizes(float64(model.compared(ends)), float64(table).T)
    return Proof.compare(N_("the model's logits"), float64(last), recorded, terms=terms)
