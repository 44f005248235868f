"""What the answer becomes without a token of the input: each one, one after the other.

A token is taken out in one of three ways, and the number of tokens stays what it is, so that no position moves:

    mask      the mask token stands in its place, of a model that was trained with one
    unknown   the unknown token stands in its place
    unseen    it stays where it is, and no position may look at it, itself included, as at padding

The third way changes no token; but the row of the token itself still begins with its embedding, so that an answer read there
still knows it.  The effects are those of `vizformer.analysis.causes.ablation` at one row of the output.

Source: Li et al. 2016, "Understanding Neural Networks through Representation Erasure"; Zeiler & Fergus 2014, section 2.1
(occlusion).
"""

from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

import torch

from vizformer.analysis.attribution.predictions import writable
from vizformer.analysis.causes.ablation import row_effects
from vizformer.analysis.causes.batches import Heard, at_once, inputs
from vizformer.analysis.frames import frame
from vizformer.checkpoints import AnyCheckpoint
from vizformer.errors import TraceError
from vizformer.model import Trace
from vizformer.model.input_check import row_at, token_id
from vizformer.text import Token

Way = Literal["mask", "unknown", "unseen"]
WAYS: tuple[Way, ...] = get_args(Way)
Stack = Literal["encoder", "decoder"]


@dataclass(frozen=True)
class TokenEffect:
    """The changes at one row of the output when one token is taken out."""

    # stack, position, token: where it stands, and which it is
    stack: Stack
    position: int
    token: Token
    divergence: float  # KL(P || P') in nats
    # logit, probability: of the token that is followed, P' minus P
    logit: float
    probability: float
    best: Token  # the most probable token without it


class TokenEffects(tuple[TokenEffect, ...]):
    """The effects of all tokens of a stack, in the order of the text."""

    def to_frame(self) -> Any:
        """A DataFrame: a row for each token, the largest KL first; of tokens their text."""
        ordered = sorted(self, key=lambda one: -one.divergence)
        rows = (vars(one) | {"token": one.token.text, "best": one.best.text} for one in ordered)
        return frame(rows, tuple(field.name for field in fields(TokenEffect)))


def ways(checkpoint: AnyCheckpoint, stack: Stack) -> tuple[Way, ...]:
    """The ways in which tokens of a stack can be taken out; recorded code cannot be told what no position may look at."""
    return tuple(
        way
        for way in WAYS
        if (checkpoint.is_own if way == "unseen" else _replacement(checkpoint, stack, way) is not None)
    )


@torch.inference_mode()
def token_sweep(
    checkpoint: AnyCheckpoint, trace: Trace, stack: Stack, row: int, token: int, way: Way, *, heard: Heard | None = None
) -> TokenEffects:
    """Takes out one token of a stack's input after the other, many in one batch.

    Raises:
        TraceError: no such stack, row or token, a way that the model does not have, or a trace in which numbers were set
            by hand.
    """
    if trace.edit is not None:
        raise TraceError("Tokens are taken out of a run in which no number was set by hand.")
    rows, vocab_size = trace.logits.shape
    row, token = row_at(row, rows), token_id(token, vocab_size)
    if stack not in trace.tokens:
        raise TraceError("This model has no stack called {stack}.", stack=stack)
    replacement = None if way == "unseen" else _replacement(checkpoint, stack, way)
    if way not in ways(checkpoint, stack):
        raise TraceError("Tokens of this model are not taken out in this way: choose another way.")
    which, n, found = list(trace.tokens).index(stack), len(trace.tokens[stack]), list[TokenEffect]()
    size = at_once(checkpoint, sum(map(len, trace.tokens.values())), rows=1) if checkpoint.is_own else 1
    for first in range(0, n, size):
        at = torch.arange(first, min(first + size, n), device=checkpoint.device)
        items = torch.arange(len(at), device=checkpoint.device)
        ids, segments = inputs(checkpoint, trace, len(at))
        padding: list[torch.Tensor | None] = [None, None]
        if replacement is None:
            hidden = torch.zeros_like(ids[which], dtype=torch.bool)
            hidden[items, at] = True
            padding[which] = hidden
        else:
            ids[which] = ids[which].clone()
            ids[which][items, at] = replacement
        if checkpoint.is_own:
            given = dict(padding=padding[0], target_padding=padding[1], segments=segments)
            logits = checkpoint.model(*ids, **given, rows=(slice(None), row))
        else:
            source, *target = [each[0].tolist() for each in ids]
            logits = checkpoint.trace(ids=source, target_ids=target[0] if target else None).logits[row][None]
        effects = row_effects(trace.logits[row], logits, token)
        best = checkpoint.tokenizer.tokens(writable(checkpoint, logits).argmax(-1).tolist())
        for place, (divergence, logit, probability), other in zip(at.tolist(), effects.T.tolist(), best, strict=True):
            found.append(TokenEffect(stack, place, trace.tokens[stack][place], divergence, logit, probability, other))
        if heard is not None:
            heard(len(found), n)
    return TokenEffects(found)


def _replacement(checkpoint: AnyCheckpoint, stack: Stack, way: Way) -> int | None:
    """The id that takes a token's place, of the vocabulary that the stack reads."""
    if way == "mask":
        return None if checkpoint.shape.decoder_heads else checkpoint.shape.mask_id
    return checkpoint.tokenizer_of(stack).unknown_id
