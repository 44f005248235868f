"""A decoder and a text that is given: what each row is trained to say, how surely it does, and what one error leads to."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from vizformer.analysis.attribution.predictions import Prediction, most_probable
from vizformer.checkpoints import AnyCheckpoint
from vizformer.errors import TraceError
from vizformer.model import Trace
from vizformer.text import Token

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from vizformer.generation import GenerationStep

LONGEST = 12  # tokens of a text that the model writes for a comparison


@dataclass(frozen=True)
class ForcedRow:
    """One row of the decoder under teacher forcing."""

    read: Token  # the token that stands in this row: the right one, whatever was predicted before
    wanted: Token  # the token that it is trained to say: the next one of the same text
    probability: float  # P(wanted | the tokens up to `read`)
    best: tuple[Prediction, ...]  # what the model itself finds most probable, in order

    @property
    def loss(self) -> float:
        """-log P(wanted), in nats."""
        return -math.log(self.probability) if self.probability > 0 else math.inf

    @property
    def is_right(self) -> bool:
        return self.best[0].token.id == self.wanted.id


def forced_rows(checkpoint: AnyCheckpoint, trace: Trace, count: int = 5) -> tuple[ForcedRow, ...]:
    """The prediction of each decoder row for the token that follows it.

    Row i has read tokens 0 to i, and its target is token i + 1: the same text, shifted by one place.  A target of an
    encoder-decoder ends with the end mark; of a decoder's text nobody knows how it goes on, so its last row has no target.

        loss = sum_i -log softmax(logits[i])[token i + 1]

    Source: Williams and Zipser 1989, "A Learning Algorithm for Continually Running Fully Recurrent Neural Networks"
    (teacher forcing); Vaswani et al. 2017, section 3.1 (the outputs are shifted right).

    Raises:
        TraceError: a model without a decoder.
    """
    tokens = trace.tokens.get("decoder", ())
    if checkpoint.model.decoder is None or not tokens:
        raise TraceError("{name} has no decoder: it says nothing of a next token.", name=checkpoint.name)
    wanted, end = [token.id for token in tokens[1:]], checkpoint.model.config.eos_id
    if checkpoint.model.encoder is not None and end is not None:
        wanted.append(end)
    probabilities = torch.softmax(trace.logits[: len(wanted)].double(), dim=-1)  # [rows, vocab_size]
    named = checkpoint.tokenizer.tokens(wanted)
    return tuple(
        ForcedRow(
            read=tokens[i],
            wanted=named[i],
            probability=float(probabilities[i, id]),
            best=most_probable(checkpoint, trace.logits[i], count),
        )
        for i, id in enumerate(wanted)
    )


@dataclass(frozen=True)
class OneError:
    """The decoder's choices after one wrong token, with teacher forcing and in free generation."""

    rows: tuple[ForcedRow, ...]  # the rows of the right text, from the one that says its first token; see `forced_rows`
    step: int  # where the wrong token stands, counted from 0
    wrong: Token
    # what the model writes after it has read its own error: right up to `step`, `wrong` there, its own from then on
    free: tuple[Token, ...]
    whole: str  # `free` as a text, with what it began with

    @property
    def changed(self) -> int:
        """How many tokens after the error differ from the right text (those that are missing or too many count)."""
        right = [row.wanted.id for row in self.rows][self.step + 1 :]
        mine = [token.id for token in self.free][self.step + 1 :]
        same = sum(a == b for a, b in zip(right, mine, strict=False))
        return max(len(right), len(mine)) - same


def right_rows(checkpoint: AnyCheckpoint, text: str, trace: Trace) -> tuple[ForcedRow, ...]:
    """The first rows of a right text, at most `LONGEST`: the target of the trace, or how a decoder itself goes on."""
    if checkpoint.model.encoder is not None:
        return forced_rows(checkpoint, trace)[:LONGEST]
    __, beginning = checkpoint.opening(text)
    start = [token.id for token in beginning]
    written = [step.id for step in _steps(checkpoint, text, {})]
    return forced_rows(checkpoint, checkpoint.trace(ids=[*start, *written]))[len(start) - 1 :]


def one_error(checkpoint: AnyCheckpoint, text: str, rows: tuple[ForcedRow, ...], step: int, rank: int) -> OneError:
    """The model takes its `rank`-th best other token at `step` of a right text (`right_rows`), and goes on by itself."""
    if not 0 <= step < len(rows):
        raise TraceError("There is no step {step}: choose 0 to {last}.", step=step, last=len(rows) - 1)
    others = [p.token for p in rows[step].best if p.token.id != rows[step].wanted.id]
    wrong = others[min(rank, len(others) - 1)]
    given = {i: row.wanted.id for i, row in enumerate(rows[:step])} | {step: wrong.id}
    ids = [one.id for one in _steps(checkpoint, text, given, at_least=step + 1)]
    __, beginning = checkpoint.opening(text)
    whole = checkpoint.tokenizer.decode([*(token.id for token in beginning), *ids]).strip()
    return OneError(rows, step, wrong, checkpoint.tokenizer.tokens(ids), whole)


def _steps(
    checkpoint: AnyCheckpoint, text: str, instead: "Mapping[int, int]", at_least: int = 0
) -> "Iterator[GenerationStep]":
    return checkpoint.stream(text, max_new=max(LONGEST, at_least), instead=instead)
