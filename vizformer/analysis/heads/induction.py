"""Do heads look at the token before, and at what followed the last time? The two halves of an induction head."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy import ndarray
from torch import Tensor

from vizformer.analysis.heads.maps import Kind, head_maps
from vizformer.errors import TraceError
from vizformer.model import Transformer
from vizformer.model.trace import Trace
from vizformer.text import Tokenizer


@dataclass(frozen=True)
class HeadScores:
    """How much every self-attention head of a stack does one of two things, 0 to 1, averaged over sequences.

    Attributes:
        previous_token: mean attention of a token to the one before it.
        induction: mean attention of a repeated token to the one that followed its earlier occurrence.
    """

    previous_token: Float[ndarray, "n_layers n_heads"]
    induction: Float[ndarray, "n_layers n_heads"]


def strongest_head(scores: Float[ndarray, "n_layers n_heads"]) -> tuple[int, int, float]:
    """Layer and head of the highest score, and the score."""
    layer, head = np.unravel_index(scores.argmax(), scores.shape)
    return int(layer), int(head), float(scores[layer, head])


def previous_token_score(patterns: Float[ndarray, "*heads n n"]) -> Float[ndarray, "*heads"]:
    """mean over i = 1..n-1 of pattern[i, i-1].

    Raises:
        ValueError: a pattern of fewer than two tokens.
    """
    n = patterns.shape[-1]
    if n < 2:
        raise ValueError(f"{n} token(s): a token before another one needs two")
    query = np.arange(1, n)
    return np.asarray(patterns[..., query, query - 1].mean(-1))


def induction_score(patterns: Float[ndarray, "*heads n n"], period: int, start: int = 0) -> Float[ndarray, "*heads"]:
    """mean over i = start+period..n-1 of pattern[i, i - period + 1].

    In a sequence that repeats itself every `period` tokens from position `start` on, token i stood at i - period
    before, and i - period + 1 is what followed it there: what a model that copies has to look up.

    Source: Olsson et al. 2022, "In-context Learning and Induction Heads" (the prefix-matching score).

    Raises:
        ValueError: nothing is repeated: a period below 2, or no token after the first period.
    """
    n = patterns.shape[-1]
    if period < 2 or start < 0 or start + period >= n:
        raise ValueError(f"{n} tokens with a period of {period} from position {start}: nothing is repeated")
    query = np.arange(start + period, n)
    return np.asarray(patterns[..., query, query - period + 1].mean(-1))


def head_scores(model: Transformer, ids: Int[Tensor, "b n"], period: int, start: int = 0) -> HeadScores:
    """Both scores of every head of a one-stack model, averaged over sequences that repeat themselves.

    `ids`: sequences; from position `start` on, each repeats itself every `period` tokens.  Random tokens measure the
        mechanism alone: nothing else tells what comes next.

    Raises:
        TraceError: a model with two stacks; too long sequences.
        ValueError: the sequences are too short for something to be repeated.
    """
    if model.config.architecture == "encoder-decoder":
        raise TraceError(
            "Heads that look back within one text are measured on models with one stack; this one has two."
        )
    kind: Kind = "encoder" if model.decoder is None else "decoder"
    previous, induction = [], []
    for row in ids:
        trace = Trace()
        with torch.inference_mode():
            model(row[None].to(model.embedding.weight.device), trace=trace)
        patterns = head_maps(trace, kind).weights  # [n_layers, n_heads, n, n]
        previous.append(previous_token_score(patterns))
        induction.append(induction_score(patterns, period, start))
    return HeadScores(np.mean(previous, axis=0), np.mean(induction, axis=0))


def repeatable(vocab_size: int, tokenizer: Tokenizer, room: int, period: int) -> tuple[Int[Tensor, " m"], int]:
    """The ids that can be drawn for `repeated_tokens` (no special ones), and the longest period up to `period`.

    `room`: positions for both times.
    """
    ids = range(min(vocab_size, tokenizer.vocab_size))
    candidates = torch.tensor([id for id in ids if not tokenizer.is_special(id)])
    return candidates, min(period, len(candidates), room // 2)


def repeated_tokens(
    candidates: Int[Tensor, " m"], *, sequences: int, period: int, times: int = 2, seed: int = 0
) -> Int[Tensor, "sequences n"]:
    """Sequences of `period` random tokens, each sequence repeated `times` times, for `head_scores`.

    The tokens of a period are drawn from `candidates` without replacement where there are enough of them: a token that
    stands twice in a period was followed by two different ones.
    """
    generator = torch.Generator().manual_seed(seed)
    weights = torch.ones(sequences, len(candidates))  # [sequences, m]
    drawn = torch.multinomial(weights, period, replacement=period > len(candidates), generator=generator)
    return candidates.cpu()[drawn].repeat(1, times)  # [sequences, times * period]
