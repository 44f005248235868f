"""A decoder and a text that is given: what each row is trained to say, how surely it does, and what one error leads to."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from vizformer.analysis.one_forward.predictions import Prediction, most_probable
from vizformer.checkpoints import AnyCheckpoint
from vizformer.errors import TraceError
from vizformer.generation import GREEDY, GenerationStep, next_token
from vizformer.model import Cache, Trace
from vizformer.text import Token

LONGEST = 12  # tokens of a text that the model writes for a comparison

Change = Literal["own", "zero", "other", "without"]
LONGEST_WRITTEN = 60  # tokens that are written at most; a model that gets nothing to translate may not find an end


@dataclass(frozen=True)
class Written:
    """The text that a decoder generates from a memory by greedy decoding."""

    tokens: tuple[Token, ...]
    text: str
    ended: bool  # whether the end mark came within `LONGEST` tokens


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
    chances: tuple[float, ...]  # P(right token i | the tokens that were written before it) in free generation

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
    steps = list(_steps(checkpoint, text, given, at_least=step + 1))
    ids = [one.id for one in steps]
    chances = tuple(float(one.probabilities[row.wanted.id]) for one, row in zip(steps, rows, strict=False))
    __, beginning = checkpoint.opening(text)
    whole = checkpoint.tokenizer.decode([*(token.id for token in beginning), *ids]).strip()
    return OneError(rows, step, wrong, checkpoint.tokenizer.tokens(ids), whole, chances)


def _steps(
    checkpoint: AnyCheckpoint, text: str, instead: Mapping[int, int], at_least: int = 0
) -> Iterator[GenerationStep]:
    return checkpoint.stream(text, max_new=max(LONGEST, at_least), instead=instead)


# What the decoder makes of another memory than the encoder's output for its sentence.
def change_memory(
    checkpoint: AnyCheckpoint, trace: Trace, change: Change, *, other: str = "", token: int = 0
) -> Float[Tensor, "n d_model"]:
    """The encoder's output, or what takes its place.

    own: as it is.  zero: all numbers 0.  other: the output for the sentence `other`.  without: row `token` left out (what
    the other rows know of it stays in them).

    Raises:
        TraceError: a model without two stacks; a sentence that cannot be read; no such row, or no other one.
    """
    if checkpoint.model.encoder is None or checkpoint.model.decoder is None:
        raise TraceError("This model has one stack: its decoder has no memory to look at.")
    own = trace.residual("encoder.final")
    if change == "zero":
        return torch.zeros_like(own)
    if change == "other":
        tokens = checkpoint.encode(other)
        with torch.inference_mode():
            found: Tensor = checkpoint.model.encode(checkpoint.tensor(tokens), segments=checkpoint.segments(tokens))[0]
        return found
    if change == "without":
        if not 0 <= token < len(own) or len(own) == 1:
            raise TraceError("There is no token {token} that could be left out.", token=token)
        return torch.cat([own[:token], own[token + 1 :]])
    return own


@torch.inference_mode()
def written(checkpoint: AnyCheckpoint, memory: Float[Tensor, "n d_model"], longest: int = LONGEST_WRITTEN) -> Written:
    """Greedy decoding from a memory.

    Raises:
        TraceError: nothing says how a target of this model begins.
    """
    model, config = checkpoint.model, checkpoint.model.config
    if not config.start_ids:
        raise TraceError("Nothing says with which token this model's target begins, so it cannot begin to write.")
    ids, cache = list(config.start_ids), Cache()
    first = len(ids)
    ended = False
    while len(ids) - first < longest and len(ids) < config.max_positions and not ended:
        new = torch.tensor([ids[cache.length :]], device=checkpoint.device)
        logits = model.logits(model.decode(new, memory[None], cache=cache)[0, -1])
        chosen = next_token(logits, ids, GREEDY, never=config.never_written)
        ids.append(int(chosen.filtered.argmax()))
        ended = ids[-1] == config.eos_id
    said = ids[first : len(ids) - ended]
    return Written(checkpoint.tokenizer.tokens(said), checkpoint.tokenizer.decode(said).strip(), ended)


@torch.inference_mode()
def probabilities(
    checkpoint: AnyCheckpoint, trace: Trace, memory: Float[Tensor, "n d_model"]
) -> Float[ndarray, " n_target"]:
    """p(the next token of the target | those before it, the memory) for every token of the trace's target but the first.

    After the last one, p(the end mark), where the model has one.
    """
    tokens = trace.tokens["decoder"]
    logits = checkpoint.model.logits(checkpoint.model.decode(checkpoint.tensor(tokens), memory[None])[0])
    asked = [token.id for token in tokens[1:]]
    end = checkpoint.model.config.eos_id
    asked = asked if end is None else [*asked, end]
    p = logits[: len(asked)].double().softmax(-1)
    found: ndarray = p[torch.arange(len(asked)), torch.tensor(asked)].cpu().numpy()
    return np.asarray(found)
