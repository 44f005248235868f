"""Causal head gating: gates on the heads, learned on a text set, say which heads help, hinder or do not matter.

The output z of every head is multiplied by a gate g between 0 and 1, and the gates alone are learned; the weights stay:

    L(g) = mean of -ln P(token | text; g)  -  lambda * sum over heads of logit(g),     logit(g) = ln(g / (1 - g)), clipped

The first term is the loss in nats per token.  The second one pushes every gate open where lambda > 0, and shut where
lambda < 0.  From one fit with lambda = 0, two more begin: g+ with lambda, g- with -lambda.  A head whose gate stays open
though it is pushed shut facilitates; one whose gate stays shut though it is pushed open interferes; one that gives way to
both is irrelevant:

    facilitation = g-        interference = 1 - g+        irrelevance = g+ (1 - g-)

A gate at g resists the push only where |dL/dg| g (1 - g) reaches lambda, so that lambda says how many nats count.  All gates
are learned together: of two heads that do the same, one may be given up, another one with each seed; so there are several
seeds, and their spread.  An encoder without a decoder is asked for 15 % of its tokens, drawn and masked anew in each step.

A gate far from 0 may be enough for all that a head does, where what reads it saturates (a softmax over large scores).
Such a head gives way to the push though the loss rises without it.  So every head is also taken out alone, and one whose
gates say another thing than this measurement has no role.

Source: Nam et al. 2025, "Causal Head Gating: A Framework for Interpreting Roles of Attention Heads in Transformers"
(objective, g+ and g-, and the three roles).  Theirs is the sum over a data set; the mean is taken here, so that lambda does
not depend on how many texts there are.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from vizformer.analysis.causes.ablation import Part, by_head, parts_of
from vizformer.analysis.causes.batches import Heard
from vizformer.analysis.frames import frame
from vizformer.analysis.heads.maps import Kind
from vizformer.checkpoints import Checkpoint
from vizformer.errors import TraceError
from vizformer.model import Edit, Trace
from vizformer.text import Token

Role = Literal["facilitating", "interfering", "irrelevant"]
ROLES: tuple[Role, ...] = get_args(Role)
CLIP = 4.0  # the largest |logit(g)|: gates stay between 0.018 and 0.982, where they can still be learned
RATE, STEPS, LAMBDA = 0.3, 60, 0.01
MOST_TOKENS = 64  # of a text that are read
TEXTS_AT_ONCE = 8
HIDDEN_SHARE = 0.15


@dataclass(frozen=True)
class HeadGates:
    """The gates of all heads, seed by seed."""

    heads: tuple[Part, ...]  # in the order of the arrays
    opened: Float[ndarray, "seeds heads"]  # g+, learned while pushed open
    closed: Float[ndarray, "seeds heads"]  # g-, learned while pushed shut
    push: float  # lambda, in nats per token
    loss: float  # of the texts with all gates open, in nats per token
    # how much this loss rises where one head is taken out (zero), all others as they are: the plain ablation
    without: Float[ndarray, " heads"]
    # the same where the gate of this head alone is at the mean of its g-; far below `without` if the head is saturated
    at_closed: Float[ndarray, " heads"]
    # loss_opened, loss_closed: with g+ and g- of each seed
    loss_opened: Float[ndarray, " seeds"]
    loss_closed: Float[ndarray, " seeds"]

    def scores(self, role: Role) -> Float[ndarray, "seeds heads"]:
        """Facilitation, interference or irrelevance; see the module."""
        if role == "facilitating":
            return self.closed
        return 1 - self.opened if role == "interfering" else self.opened * (1 - self.closed)

    def to_frame(self) -> Any:
        """A DataFrame: a row for each head, its gates as means over the seeds."""
        columns = zip(self.heads, self.roles(), self.opened.mean(0), self.closed.mean(0), self.without, strict=True)
        return frame(
            {"place": part.sublayer, "head": part.head, "role": role, "opened": g, "closed": h, "without": loss}
            for part, role, g, h, loss in columns
        )

    def roles(self) -> tuple[Role | None, ...]:
        """Of each head, that of its largest mean score; None where the loss without the head says otherwise.

        The loss says otherwise where it falls by more than `push` without a head that facilitates, rises by more than it
        without one that interferes, or changes by more than it without one that is irrelevant.
        """
        means = np.stack([self.scores(role).mean(0) for role in ROLES])
        against = np.stack([-self.without, self.without, np.abs(self.without)])  # in the order of ROLES
        return tuple(
            ROLES[int(best)] if against[best, head] <= self.push else None for head, best in enumerate(means.argmax(0))
        )


def fit_gates(
    checkpoint: Checkpoint,
    texts: Sequence[Trace],
    *,
    prompts: Sequence[int] | None = None,
    push: float = LAMBDA,
    seeds: Sequence[int] = (0, 1, 2),
    steps: int = STEPS,
    heard: Heard | None = None,
) -> HeadGates:
    """Learns the gates of a model on some texts, with Adam.

    Args:
        texts: their tokens are read, up to MOST_TOKENS of each stack.
        prompts: of each text, how many tokens at its beginning are a prompt, which is read and not asked for; those of
            the last stack, of a model that has a decoder.  All but the first token are asked for where nothing is said.
        push: lambda, above 0, in nats per token.
        seeds: of the first gates, of the order of the texts and of what is masked.
        steps: of each of the three fits.
        heard: is told after each step, and each loss with one gate changed, how many are done, and how many there are;
            what it raises ends it.

    Raises:
        TraceError: no text, none that has a token to predict, or an encoder without a mask token.
    """
    batches = _batches(checkpoint, texts, prompts)
    if not push > 0 or not math.isfinite(push):
        raise TraceError("The push on the gates must be a number above 0, not {value}.", value=push)
    heads = tuple(part for part in parts_of(texts[0]) if part.head is not None)
    done, total = 0, runs(len(heads), len(seeds), steps)

    def told() -> None:
        nonlocal done
        done += 1
        if heard is not None:
            heard(done, total)

    opened, closed = np.zeros((len(seeds), len(heads))), np.zeros((len(seeds), len(heads)))
    losses = np.zeros((2, len(seeds)))
    with torch.inference_mode(False), torch.enable_grad():
        for at, seed in enumerate(seeds):
            random = torch.Generator().manual_seed(seed)
            first = torch.randn(len(heads), generator=random)
            free = _fit(checkpoint, heads, batches, first, 0.0, steps, random, told)
            for fitted, losses_of, sign in ((opened, losses[0], 1.0), (closed, losses[1], -1.0)):
                logits = _fit(checkpoint, heads, batches, free, sign * push, steps, random, told)
                fitted[at] = logits.sigmoid().numpy()
                losses_of[at] = _whole_loss(checkpoint, heads, batches, logits.sigmoid())
        loss = _whole_loss(checkpoint, heads, batches, torch.ones(len(heads)))
        alone = np.zeros((2, len(heads)))
        for at, gate in enumerate((np.zeros(len(heads)), closed.mean(0))):
            for head in range(len(heads)):
                gates = torch.ones(len(heads))
                gates[head] = float(gate[head])
                alone[at, head] = _whole_loss(checkpoint, heads, batches, gates) - loss
                told()
    return HeadGates(heads, opened, closed, push, loss, alone[0], alone[1], losses[0], losses[1])


def runs(n_heads: int, n_seeds: int, steps: int = STEPS) -> int:
    """How many steps `fit_gates` tells of: those of three fits for each seed, and two for each head alone."""
    return 3 * steps * n_seeds + 2 * n_heads


def table_of(found: HeadGates, role: Role, kind: Kind) -> Float[ndarray, "n_layers n_heads"]:
    """The mean score of every head of one kind of attention; NaN, not a high irrelevance, where a head has no role."""
    mean = found.scores(role).mean(0)
    if role == "irrelevant":
        mean[[said is None for said in found.roles()]] = np.nan
    return by_head(dict(zip(found.heads, mean.tolist(), strict=True)), kind)


@dataclass(frozen=True)
class _Batch:
    """Texts of one length, filled up: ids and padding [b, n] stack by stack, and segments where the model has such."""

    ids: tuple[Tensor, ...]
    padding: tuple[Tensor, ...]
    asked: Tensor  # which tokens of the last stack are predicted; of an encoder, which may be masked
    segments: Tensor | None


def _batches(checkpoint: Checkpoint, texts: Sequence[Trace], prompts: Sequence[int] | None) -> list[_Batch]:
    config = checkpoint.model.config
    if not texts:
        raise TraceError("There is no text on which gates could be learned.")
    if config.architecture == "encoder-only" and config.mask_id is None:
        raise TraceError("Gates are learned on masked tokens here, and this model has no mask token.")
    found = []
    for first in range(0, len(texts), TEXTS_AT_ONCE):
        group = texts[first : first + TEXTS_AT_ONCE]
        ids, padding = [], []
        for stack in group[0].tokens:
            rows = [[token.id for token in _first_tokens(trace, stack)] for trace in group]
            n = max(map(len, rows))
            ids.append(torch.tensor([row + [0] * (n - len(row)) for row in rows], device=checkpoint.device))
            lengths = torch.tensor([len(row) for row in rows], device=checkpoint.device)
            padding.append(torch.arange(n, device=checkpoint.device) >= lengths[:, None])
        segments = torch.zeros_like(ids[0]) if config.n_segments else None
        asked = ~padding[-1]
        if config.architecture == "encoder-only":  # marks are never guessed, as in its training
            marks = [[token.special for token in _first_tokens(trace, "encoder")] for trace in group]
            n = asked.shape[1]
            asked &= ~torch.tensor([row + [True] * (n - len(row)) for row in marks], device=checkpoint.device)
        else:
            known = [1] * len(group) if prompts is None else [max(1, n) for n in prompts[first : first + len(group)]]
            place = torch.arange(asked.shape[1], device=checkpoint.device)
            asked &= place >= torch.tensor(known, device=checkpoint.device)[:, None]
        found.append(_Batch(tuple(ids), tuple(padding), asked, segments))
    if not any(bool(batch.asked.any()) for batch in found):
        raise TraceError("There is no text on which gates could be learned.")
    return found


def _first_tokens(trace: Trace, stack: str) -> Sequence[Token]:
    """As many as are read; what an encoder reads ends with its end mark all the same."""
    tokens = trace.tokens[stack]
    if len(tokens) > MOST_TOKENS and stack == "encoder" and tokens[-1].special:
        return [*tokens[: MOST_TOKENS - 1], tokens[-1]]
    return tokens[:MOST_TOKENS]


def _fit(
    checkpoint: Checkpoint,
    heads: Sequence[Part],
    batches: Sequence[_Batch],
    first: Float[Tensor, " heads"],
    push: float,
    steps: int,
    random: torch.Generator,
    told: Callable[[], None],
) -> Float[Tensor, " heads"]:
    """The logits of the gates after so many steps."""
    logits = first.clone().requires_grad_()
    adam, order = torch.optim.Adam([logits], lr=RATE), _order(len(batches), random)
    for _ in range(steps):
        loss, tokens = _loss(checkpoint, heads, batches[next(order)], logits.sigmoid(), random)
        adam.zero_grad()
        (loss / max(tokens, 1) - push * logits.sum()).backward()  # type: ignore[no-untyped-call]
        adam.step()
        with torch.no_grad():
            logits.clamp_(-CLIP, CLIP)
        told()
    return logits.detach()


def _order(n: int, random: torch.Generator) -> Iterator[int]:
    while True:
        yield from torch.randperm(n, generator=random).tolist()


@torch.no_grad()
def _whole_loss(
    checkpoint: Checkpoint, heads: Sequence[Part], batches: Sequence[_Batch], gates: Float[Tensor, " heads"]
) -> float:
    """In nats per token, over all texts."""
    random = torch.Generator().manual_seed(0)
    both = [_loss(checkpoint, heads, batch, gates, random) for batch in batches]
    return sum(float(loss) for loss, __ in both) / max(sum(tokens for __, tokens in both), 1)


def _loss(
    checkpoint: Checkpoint,
    heads: Sequence[Part],
    batch: _Batch,
    gates: Float[Tensor, " heads"],
    random: torch.Generator,
) -> tuple[Tensor, int]:
    """The sum of -ln P over the tokens of a batch that are predicted, and how many they are."""
    ids, config = list(batch.ids), checkpoint.model.config
    if config.architecture == "encoder-only":
        asked = (torch.rand(ids[0].shape, generator=random) < HIDDEN_SHARE).to(ids[0].device) & batch.asked
        wanted = ids[0]
        ids[0] = torch.where(asked, torch.full_like(ids[0], config.mask_id or 0), ids[0])
    else:
        wanted, asked = ids[-1][:, 1:], batch.asked[:, 1:]
    padding = dict(zip(("padding", "target_padding"), batch.padding, strict=False))
    edit = _Gates(gates=_by_site(heads, gates))
    rows = asked.nonzero(as_tuple=True)
    logits = checkpoint.model(*ids, **padding, segments=batch.segments, edit=edit, rows=rows)  # [tokens, vocab_size]
    return torch.nn.functional.cross_entropy(logits.float(), wanted[asked], reduction="sum"), int(asked.sum())


def _by_site(heads: Sequence[Part], gates: Float[Tensor, " heads"]) -> dict[str, Tensor]:
    places: dict[str, list[int]] = {}
    for at, part in enumerate(heads):
        places.setdefault(part.sublayer, []).append(at)
    return {site: gates[indices] for site, indices in places.items()}


@dataclass(frozen=True)
class _Gates(Edit):
    """Multiplies what each head puts out."""

    gates: Mapping[str, Tensor] = field(default_factory=dict)  # of the heads of every attention [n_heads]

    def heads(self, site: str, z: Tensor, v: Tensor) -> Tensor:
        return z * self.gates[site].to(z)[:, None, None] if site in self.gates else z
