"""One prompt, several ways of decoding: the text that each writes, and its probability under the model."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy import ndarray
from torch import Tensor

from vizformer.analysis.costs.generation_cost import text_costs
from vizformer.analysis.one_forward.predictions import writable
from vizformer.checkpoints import AnyCheckpoint
from vizformer.config import ModelConfig
from vizformer.generation import GREEDY, Sampling, length_penalty, next_token
from vizformer.text import Token


@dataclass(frozen=True)
class Written:
    """A text and what the model thinks of it."""

    text: str
    length: int  # how many, the end mark included
    # sum over the new tokens of log P(token | all before it), in nats: the model's own P, before temperature and cuts
    log_probability: float
    ended: bool

    def score(self, alpha: float) -> float:
        """log P / ((5 + length) / 6)^alpha, by which beam search compares texts of different lengths."""
        return self.log_probability / length_penalty(self.length, alpha)


Score = Callable[[tuple[int, ...], bool], Written]
"""Scores a text by its token ids and by whether it has ended."""


def written(
    checkpoint: AnyCheckpoint, text: str, max_new: int, sampling: Sampling = GREEDY, score: Score | None = None
) -> Written:
    """The text that one decoding strategy generates; `score` replaces `scored` as the function that scores its tokens."""
    steps = list(checkpoint.stream(text, sampling=sampling, max_new=max_new))
    return (score or partial(scored, checkpoint, text))(tuple(step.id for step in steps), steps[-1].end == "eos")


def beams(
    checkpoint: AnyCheckpoint, text: str, max_new: int, width: int, alpha: float, score: Score | None = None
) -> list[Written]:
    """The hypotheses of beam search, the best first; `score` as in `written`."""
    end, score = checkpoint.shape.eos_id, score or partial(scored, checkpoint, text)
    found = checkpoint.beam(text, width=width, alpha=alpha, max_new=max_new)
    return [score(one.ids, one.ids[-1:] == (end,)) for __, one in found]


def scored(
    checkpoint: AnyCheckpoint,
    text: str,
    ids: Sequence[int],
    ended: bool,
    logits: Float[Tensor, "new vocab_size"] | None = None,
) -> Written:
    """A text with its probability, read off one forward over it: however it was found, the same text has the same one.

    Args:
        logits: from which its tokens are chosen, where that forward has been done.
    """
    found = _next_logits(checkpoint, text, ids) if logits is None else logits.double().cpu()
    log_p = found.log_softmax(-1)
    total = float(log_p[torch.arange(len(ids)), torch.tensor(ids)].sum())
    return Written(checkpoint.tokenizer.decode(list(ids)).strip(), len(ids), total, ended)


def _next_logits(checkpoint: AnyCheckpoint, text: str, ids: Sequence[int]) -> Float[Tensor, "new vocab_size"]:
    """The logits from which each of these new tokens is chosen, in float64.

    One forward over the whole text: row i sees no later token, so that it is the one that step i computes.
    """
    source, beginning = checkpoint.opening(text)
    start, memory = [token.id for token in beginning], [token.id for token in source]
    read = [*start, *ids[:-1]]
    trace = checkpoint.trace(ids=memory, target_ids=read) if memory else checkpoint.trace(ids=read)
    return trace.logits[len(start) - 1 :].double().cpu()


def first_token(
    checkpoint: AnyCheckpoint, text: str, temperature: float, count: int = 10
) -> list[tuple[Token, float, float]]:
    """The most probable first new tokens: (token, P, P at this temperature), P_T proportional to P^(1/T)."""
    return warmed(checkpoint, first_distribution(checkpoint, text), temperature, count)


def first_distribution(checkpoint: AnyCheckpoint, text: str) -> Float[Tensor, " vocab_size"]:
    """P(first new token | text), the model's own."""
    return next(iter(checkpoint.stream(text, max_new=1))).probabilities


def warmed(
    checkpoint: AnyCheckpoint, probabilities: Float[Tensor, " vocab_size"], temperature: float, count: int = 10
) -> list[tuple[Token, float, float]]:
    """The most probable tokens of a distribution: (token, P, P at this temperature)."""
    never = checkpoint.shape.never_written
    then = next_token(probabilities.log(), sampling=Sampling(temperature=temperature), never=never).filtered
    ids = writable(checkpoint, probabilities).topk(min(count, probabilities.numel())).indices
    tokens = checkpoint.tokenizer.tokens(ids.tolist())
    return [(token, float(probabilities[token.id]), float(then[token.id])) for token in tokens]


def cache_difference(checkpoint: AnyCheckpoint, text: str, max_new: int) -> tuple[float, int]:
    """(the largest difference between P with the KV cache and without, steps compared).

    With the cache each step computes one row.  Without it, one forward over the whole text computes all rows.
    """
    steps = list(checkpoint.stream(text, max_new=max_new))
    again = _next_logits(checkpoint, text, [step.id for step in steps]).softmax(-1)
    kept = torch.stack([step.probabilities for step in steps]).double().cpu()
    return float((again - kept).abs().max()), len(steps)


def growth(config: ModelConfig, n: int, memory: int = 0) -> "tuple[Int[ndarray, '2 4'], Int[ndarray, '2 4']]":
    """Multiplications for n new tokens and for 2n, of one start mark: (without the cache, with it).

    Columns: attention, projections, feed-forward, unembedding (`vizformer.analysis.costs.generation_cost.Multiplications`).
    """

    costs = text_costs(config, 1, 2 * n, memory)
    without, kept = (np.stack([side[:n].sum(0), side.sum(0)]) for side in (costs.uncached, costs.cached))
    return without, kept
