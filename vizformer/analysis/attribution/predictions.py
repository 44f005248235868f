"""What the model expects next."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from vizformer.checkpoints import AnyCheckpoint
from vizformer.model.input_check import row_at
from vizformer.model.trace import Trace
from vizformer.text import Token


@dataclass(frozen=True)
class Prediction:
    """A candidate for the next token and its probability."""

    token: Token
    probability: float


def next_tokens(checkpoint: AnyCheckpoint, trace: Trace, position: int, count: int = 10) -> tuple[Prediction, ...]:
    """The `count` most probable tokens after position `position` of the last stack, most probable first.

    p = softmax(logits[position])
    """
    n = trace.logits.shape[0]
    return most_probable(checkpoint, trace.logits[row_at(position, n)], count)


def most_probable(
    checkpoint: AnyCheckpoint, logits: Float[Tensor, " vocab_size"], count: int = 10
) -> tuple[Prediction, ...]:
    """The `count` tokens of the largest softmax(logits) that the model may write, most probable first."""
    probabilities = torch.softmax(logits.double(), dim=-1)  # [vocab_size]
    ids = writable(checkpoint, probabilities).topk(min(count, probabilities.numel())).indices
    tokens = checkpoint.tokenizer.tokens(ids.tolist())
    return tuple(Prediction(token, p) for token, p in zip(tokens, probabilities[ids].tolist(), strict=True))


def writable(checkpoint: AnyCheckpoint, values: Float[Tensor, "*n vocab_size"]) -> Float[Tensor, "*n vocab_size"]:
    """Logits or probabilities to choose by: -inf for what the model never writes (`ModelShape.never_written`)."""
    never = checkpoint.shape.never_written
    if never is None:  # (a copy of the logits of a long text and a large vocabulary would be hundreds of megabytes)
        return values
    return values.index_fill(-1, torch.tensor([never], device=values.device), -torch.inf)


def least_sure(checkpoint: AnyCheckpoint, trace: Trace, rows: Sequence[int]) -> int:
    """The row, of some rows of the last stack, whose best token is least probable: argmin_i max_t p[i, t]."""
    logits = writable(checkpoint, trace.logits[list(rows)].double())
    return rows[int(torch.softmax(logits, dim=-1).amax(-1).argmin())]


@dataclass(frozen=True)
class Choice:
    """The token that a row of a decoder predicts, and the token that follows it in the text.

    Attributes:
        next: the token that does follow in this text; after the last row, the model's own choice.
        own: the token that the model itself finds most probable there.
    """

    next: Token
    own: Token


def choices(checkpoint: AnyCheckpoint, trace: Trace) -> tuple[Choice, ...]:
    """The choice of every row i of the decoder: argmax_t logits[i, t], and the token i + 1 of the text.

    Empty where nothing is chosen: a model without a decoder, or a recorded one without logits.
    """
    tokens = trace.tokens.get("decoder", ())
    if not checkpoint.shape.decoder_heads or not tokens or trace.has_no_logits:
        return ()
    own = checkpoint.tokenizer.tokens(writable(checkpoint, trace.logits).argmax(-1).tolist())
    return tuple(Choice(tokens[i + 1] if i + 1 < len(tokens) else best, best) for i, best in enumerate(own))
