"""What the model expects next."""

from dataclasses import dataclass

import torch

from vizformer.checkpoints import Checkpoint
from vizformer.errors import TraceError
from vizformer.messages import N_
from vizformer.model.trace import Trace
from vizformer.text import Token


@dataclass(frozen=True)
class Prediction:
    """A candidate for the next token and its probability."""

    token: Token
    probability: float


def next_tokens(checkpoint: Checkpoint, trace: Trace, position: int, count: int = 10) -> tuple[Prediction, ...]:
    """The `count` most probable tokens after position `position` of the last stack, most probable first.

    p = softmax(logits[position])

    Raises:
        TraceError: no such position.
    """
    n = trace.logits.shape[0]
    if not 0 <= position < n:
        raise TraceError(N_("There is no position {position}: choose 0 to {last}.", position=position, last=n - 1))
    probabilities = torch.softmax(trace.logits[position].double(), dim=-1)  # [vocab_size]
    top = probabilities.topk(min(count, probabilities.numel()))
    tokens = checkpoint.tokenizer.tokens(top.indices.tolist())
    return tuple(Prediction(token, p) for token, p in zip(tokens, top.values.tolist(), strict=True))
