"""What the decoder makes of another memory than the encoder's output for its sentence."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from vizformer.checkpoints import AnyCheckpoint
from vizformer.errors import TraceError
from vizformer.generation import GREEDY, next_token
from vizformer.model import Cache
from vizformer.model.trace import Trace
from vizformer.text import Token

Change = Literal["own", "zero", "other", "without"]
LONGEST = 60  # tokens that are written at most; a model that gets nothing to translate may not find an end


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


@dataclass(frozen=True)
class Written:
    """The text that a decoder generates from a memory by greedy decoding."""

    tokens: tuple[Token, ...]
    text: str
    ended: bool  # whether the end mark came within `LONGEST` tokens


@torch.inference_mode()
def written(checkpoint: AnyCheckpoint, memory: Float[Tensor, "n d_model"], longest: int = LONGEST) -> Written:
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
