"""Hidden tokens: what an encoder-only model puts in their place, and how well each token can be guessed."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray

from vizformer.analysis.heads.maps import head_maps
from vizformer.checkpoints import AnyCheckpoint
from vizformer.errors import TraceError
from vizformer.model.input_check import row_at
from vizformer.model.input_check import token_id as checked_id
from vizformer.model.trace import Trace
from vizformer.text import Token

AT_ONCE = 32  # sequences in a batch of `guesses`


@dataclass(frozen=True)
class Guess:
    """How well a token is guessed where it is hidden: its probability, and how many tokens are more probable."""

    probability: float
    rank: int


def hide(checkpoint: AnyCheckpoint, tokens: Sequence[Token], positions: Collection[int]) -> Trace:
    """A forward over the tokens with those at `positions` replaced by [MASK].

    Raises:
        TraceError: a model without [MASK], or a position outside the tokens.
    """
    mask_id = _mask_id(checkpoint)
    hidden = {row_at(position, len(tokens)) for position in positions}
    return checkpoint.trace(ids=[mask_id if i in hidden else token.id for i, token in enumerate(tokens)])


def guess(trace: Trace, position: int, token_id: int) -> Guess:
    """Probability and rank of `token_id` at `position`, from 0 (the most probable) on."""
    logits = trace.logits[row_at(position, len(trace.logits))]
    token_id = checked_id(token_id, len(logits))
    return Guess(float(torch.softmax(logits.double(), -1)[token_id]), int((logits > logits[token_id]).sum()))


def guesses(checkpoint: AnyCheckpoint, tokens: Sequence[Token]) -> Float[ndarray, " n"]:
    """The probability of each token where it alone is hidden; NaN for special tokens.

    The logarithms of these add up to the sentence's pseudo-log-likelihood.
    Source: Salazar et al. 2020, "Masked Language Model Scoring", equation 1.

    Raises:
        TraceError: a model without [MASK].
    """
    mask_id = _mask_id(checkpoint)
    found = np.full(len(tokens), np.nan)
    ordinary = [i for i, token in enumerate(tokens) if not token.special]
    if not checkpoint.is_own:
        for at in ordinary:
            found[at] = guess(hide(checkpoint, tokens, [at]), at, tokens[at].id).probability
        return found
    ids = checkpoint.tensor(tokens)[0]  # [n]
    segments = checkpoint.segments(tokens)
    with torch.inference_mode():
        for start in range(0, len(ordinary), AT_ONCE):
            chosen = torch.tensor(ordinary[start : start + AT_ONCE], device=ids.device)
            rows = torch.arange(len(chosen), device=ids.device)
            batch = ids.repeat(len(chosen), 1)  # [b, n]
            batch[rows, chosen] = mask_id
            # [b, n, d_model]
            x = checkpoint.model.encode(batch, segments=None if segments is None else segments.expand(len(chosen), -1))
            p = torch.softmax(checkpoint.model.logits(x[rows, chosen]).double(), dim=-1)  # [b, vocab_size]
            found[chosen.cpu().numpy()] = p[rows, ids[chosen]].cpu().numpy()
    return found


def mean_guess(guesses: Float[ndarray, " n"]) -> float | None:
    """The geometric mean of the probabilities that are not NaN: exp(mean(log p)); None where there is none.

    Below 10^-12 a probability counts as that: one single 0 would leave nothing of the others.
    """
    known = guesses[~np.isnan(guesses)]
    return float(np.exp(np.log(np.maximum(known, 1e-12)).mean())) if len(known) else None


def looks_at(trace: Trace, position: int, head: int | None = None) -> Float[ndarray, "n_layers n"]:
    """The weights with which a position of the encoder attends, layer by layer: of one head, or their mean (None)."""
    weights = head_maps(trace, "encoder").weights  # [n_layers, n_heads, n, n]
    weights = weights[:, :, row_at(position, weights.shape[2])]  # [n_layers, n_heads, n]
    return weights.mean(1) if head is None else weights[:, head]


def _mask_id(checkpoint: AnyCheckpoint) -> int:
    shape = checkpoint.shape
    if shape.mask_id is None or shape.architecture != "encoder-only":
        raise TraceError(
            "{name} has no [MASK] token: it was not trained to fill in hidden words.", name=checkpoint.name
        )
    return shape.mask_id
