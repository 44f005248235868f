"""What the answer becomes without a part of the model: a head, a sublayer.

A part is replaced by zero, or by its mean over other texts (`part_outputs`), and the forward is done again with the same
tokens.  What changes is measured at one row of the output, where P is the model's own distribution and
P' that without the part:

    KL(P || P') = sum_t P(t) (ln P(t) - ln P'(t)), in nats
    change of the logit and of the probability of one token: P' minus P
    change of the loss: the mean of -ln P(next token of the text) over the rows that have one; none where nothing follows

Source: Michel et al. 2019, "Are Sixteen Heads Really Better than One?" (one head at a time, zero); Wang et al. 2023,
"Interpretability in the Wild", section 2 (means: zero is a value that the rest of the model has never seen).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, get_args

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from vizformer.analysis.causes.batches import Heard, at_once, inputs, judged, patched_logits
from vizformer.analysis.frames import frame
from vizformer.analysis.heads.maps import as_table, kind_of, kinds, n_layers, site_name
from vizformer.analysis.masks import rerun
from vizformer.analysis.one_forward.predictions import writable
from vizformer.checkpoints import AnyCheckpoint
from vizformer.errors import TraceError
from vizformer.model import Edit, Patch, Trace
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


def row_effects(
    base: Float[Tensor, " vocab_size"], logits: Float[Tensor, "runs vocab_size"], token: int
) -> Float[ndarray, "3 runs"]:
    """KL(P || P') in nats and the changes of the logit and of the probability of `token`, for each run."""
    p, q = base.double().log_softmax(-1), logits.double().log_softmax(-1)
    divergence = (p.exp() * (p - q)).nan_to_num_(0.0).sum(-1)  # (a token that can never come: 0 ln 0)
    logit = logits[:, token].double() - base[token].double()
    probability = q[:, token].exp() - p[token].exp()
    return np.stack([each.cpu().numpy() for each in (divergence, logit, probability)])


@dataclass(frozen=True)
class Part:
    """What can be taken out: a head of an attention, or a whole sublayer.

    Attributes:
        sublayer: an attention site, "decoder.2.cross", or "decoder.2.feedforward".
        head: None for the whole sublayer.
    """

    sublayer: str
    head: int | None = None


Means = Mapping[Part, Tensor]
"""The mean outputs of parts: z of a head [d_head], or what a sublayer adds to the residual stream [d_model]."""


@dataclass(frozen=True)
class Effect:
    """What taking one part out changes; see the module."""

    part: Part
    divergence: float  # KL(P || P') at the row, in nats
    # logit, probability: of the token, P' minus P
    logit: float
    probability: float
    # P' minus P, in nats per token; None where no token of the text follows another, or it was not asked for
    loss: float | None

    @classmethod
    def of(cls, part: Part, values: Sequence[float]) -> "Effect":
        """Makes the effect of a part from one column of `effects_of_runs`."""
        divergence, logit, probability, loss = values
        return cls(part, divergence, logit, probability, None if np.isnan(loss) else loss)


class Effects(tuple[Effect, ...]):
    """The effects of several parts, in the order in which they were asked for."""

    def to_frame(self) -> Any:
        """A DataFrame: a row for each part, the largest KL first; a whole sublayer has no head."""
        ordered = sorted(self, key=lambda one: -one.divergence)
        numbers = [{name: value for name, value in vars(one).items() if name != "part"} for one in ordered]
        places = [{"place": one.part.sublayer, "head": one.part.head} for one in ordered]
        return frame(place | values for place, values in zip(places, numbers, strict=True))


def parts_of(trace: Trace) -> tuple[Part, ...]:
    """Every head, every attention and every feed-forward sublayer of a model, by a trace of it; of recorded code, whose
    sublayers nobody names, every head.
    """
    found: list[Part] = []
    for kind in kinds(trace):
        for layer in range(n_layers(trace, kind)):
            site = site_name(kind, layer)
            found += [Part(site, head) for head in range(trace[site].n_heads)]
            if trace.is_recorded:
                continue
            found.append(Part(site))
            if kind != "cross":
                found.append(Part(f"{site.rpartition('.')[0]}.feedforward"))
    return tuple(found)


def edit_without(parts: Iterable[Part], means: Means | None = None, edit: Edit | None = None) -> Edit:
    """The edit that ablates some parts in a forward or a generation: zero in their place, or their means.

    Args:
        means: of `mean_outputs`; what they do not name becomes zero.
        edit: what is set by hand beside.
    """
    known, edit = means or {}, edit or Edit()
    return replace(edit, patches=(*edit.patches, *(patch_in_place(part, known.get(part, 0.0)) for part in parts)))


def patch_in_place(part: Part, value: Tensor | float) -> Patch:
    """The patch that replaces the output of a part by a value: z of a head, or what a sublayer adds to the stream."""
    return Patch(part.sublayer, (), value) if part.head is None else Patch(f"{part.sublayer}.z", (part.head,), value)


def without(checkpoint: AnyCheckpoint, trace: Trace, parts: Iterable[Part], means: Means | None = None) -> Trace:
    """A forward over the tokens of `trace` with some parts replaced by zero or by their means; `trace` is not changed.

    The texts are those of `trace`, and what was set by hand there is set here too.

    Raises:
        TraceError: a part that the model does not have.
    """
    return rerun(checkpoint, trace.tokens, edit_without(parts, means, trace.edit))


def sweep(
    checkpoint: AnyCheckpoint,
    trace: Trace,
    row: int,
    token: int,
    means: Means | None = None,
    *,
    parts: Sequence[Part] | None = None,
    loss: bool = True,
    heard: Heard | None = None,
) -> Effects:
    """Takes out one part after the other.

    Args:
        row: of the output, where distributions are compared.
        token: whose logit and probability are followed.
        means: what takes the place of parts (`mean_outputs`); zero where nothing is said.
        parts: those of the model where nothing is said.
        loss: whether it is measured: of a large vocabulary it takes as long as all else.

    Raises:
        TraceError: no such row, token or part.
    """
    wanted = parts_of(trace) if parts is None else parts
    runs = [edit_without([part], means).patches for part in wanted]
    values = effects_of_runs(checkpoint, trace, runs, row, token, loss=loss, heard=heard)
    return Effects(map(Effect.of, wanted, values.T.tolist()))


def effects_of_runs(
    checkpoint: AnyCheckpoint,
    trace: Trace,
    runs: Sequence[Sequence[Patch]],
    row: int,
    token: int,
    *,
    loss: bool = True,
    heard: Heard | None = None,
) -> Float[ndarray, "4 runs"]:
    """KL, and the changes of the logit, the probability and the loss (NaN without one), of runs with patches of their own.

    Raises:
        TraceError: as `sweep`.
    """
    row, token = row_at(row, len(trace.logits)), token_id(token, trace.logits.shape[1])
    before = _losses(trace, trace.logits[None]) if loss else None

    def judge(logits: Tensor) -> Float[ndarray, "4 b"]:
        at_row = logits if before is None else logits[:, row]
        change = np.full(len(logits), np.nan) if before is None else _losses(trace, logits) - before
        return np.concatenate([row_effects(trace.logits[row], at_row, token), change[None]])

    batches = patched_logits(checkpoint, trace, runs, row if before is None else None, heard)
    return judged(batches, len(runs), judge)


def effect(trace: Trace, part: Part, other: Tensor, row: int, token: int) -> Effect:
    """The effect of a part, from the logits [n, vocab_size] of a run without it, measured against those of the trace."""
    values = row_effects(trace.logits[row], other[row][None], token)[:, 0].tolist()
    return Effect.of(part, [*values, float((_losses(trace, other[None]) - _losses(trace, trace.logits[None]))[0])])


def _losses(trace: Trace, logits: Float[Tensor, "b n vocab_size"]) -> Float[ndarray, " b"]:
    """The mean loss of each run in nats per token; NaN where the text has fewer than two tokens."""
    tokens = trace.tokens.get("decoder", ())
    following = torch.tensor([token.id for token in tokens[1:]], dtype=torch.long, device=logits.device)
    found = [-each[: len(following)].double().log_softmax(-1).gather(1, following[:, None]).mean() for each in logits]
    return torch.stack(found).cpu().numpy()


def by_head(values: Mapping[Part, float], kind: str) -> Float[ndarray, "n_layers n_heads"]:
    """A number of every head of one kind of attention; NaN for those that have none."""
    heads = {
        (int(part.sublayer.split(".")[1]), part.head): value
        for part, value in values.items()
        if part.head is not None and kind_of(part.sublayer) == kind
    }
    return as_table(list(heads), list(heads.values()))


# What the answer becomes without a token of the input: each one, one after the other.
#
# A token is taken out in one of three ways, and the number of tokens stays what it is, so that no position moves:
#
#     mask      the mask token stands in its place, of a model that was trained with one
#     unknown   the unknown token stands in its place
#     unseen    it stays where it is, and no position may look at it, itself included, as at padding
#
# The third way changes no token; but the row of the token itself still begins with its embedding, so that an answer
# read there still knows it. The effects are those of `effect` at one row of the output.
#
# Source: Li et al. 2016, "Understanding Neural Networks through Representation Erasure"; Zeiler & Fergus 2014,
# section 2.1 (occlusion).
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
