"""What the answer becomes without a part of the model: a head, a sublayer; and whether those parts matter that look at much.

A part is replaced by zero, or by its mean over other texts (`part_outputs`), and the forward is done again with the same
tokens.  What changes is measured at one row of the output, where P is the model's own distribution and
P' that without the part:

    KL(P || P') = sum_t P(t) (ln P(t) - ln P'(t)), in nats
    change of the logit and of the probability of one token
    change of the loss: the mean of -ln P(next token of the text) over the rows that have one; none where nothing follows

Source: Michel et al. 2019, "Are Sixteen Heads Really Better than One?" (one head at a time, zero); Wang et al. 2023,
"Interpretability in the Wild", section 2 (means: zero is a value that the rest of the model has never seen).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from vizformer.analysis.causes.row_distance import row_effects
from vizformer.analysis.heads.maps import kind_of, kinds, n_layers, site_name
from vizformer.analysis.masks.runs import rerun
from vizformer.checkpoints import Checkpoint
from vizformer.model import Edit, Patch, Trace
from vizformer.model.input_check import row_at, token_id


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
"""What parts put out on average: of a head z [d_head], of a sublayer what it adds to the stream [d_model]."""


@dataclass(frozen=True)
class Effect:
    """What taking one part out changes; see the module.

    Attributes:
        divergence: KL(P || P') at the row, in nats.
        logit, probability: of the token, P' minus P.
        loss: P' minus P, in nats per token; None where no token of the text follows another.
        spread: of the divergence over several draws, its standard deviation (`vizformer.analysis.causes.resampling`).
    """

    part: Part
    divergence: float
    logit: float
    probability: float
    loss: float | None
    spread: float = 0.0


def parts_of(trace: Trace) -> tuple[Part, ...]:
    """Every head, every attention and every feed-forward sublayer of a model, by a trace of it."""
    found: list[Part] = []
    for kind in kinds(trace):
        for layer in range(n_layers(trace, kind)):
            site = site_name(kind, layer)
            found += [Part(site, head) for head in range(trace[site].n_heads)]
            found.append(Part(site))
            if kind != "cross":
                found.append(Part(f"{site.rpartition('.')[0]}.feedforward"))
    return tuple(found)


def edit_without(parts: Iterable[Part], means: Means | None = None, edit: Edit | None = None) -> Edit:
    """What a forward, or a generation, is given to do without some parts: zero in their place, or their means.

    Args:
        means: of `mean_outputs`; what they do not name becomes zero.
        edit: what is set by hand beside.
    """
    known, edit = means or {}, edit or Edit()
    patches = (
        Patch(part.sublayer, (), known.get(part, 0.0))
        if part.head is None
        else Patch(f"{part.sublayer}.z", (part.head,), known.get(part, 0.0))
        for part in parts
    )
    return replace(edit, patches=(*edit.patches, *patches))


def without(checkpoint: Checkpoint, trace: Trace, parts: Iterable[Part], means: Means | None = None) -> Trace:
    """The same tokens without some parts, or with their means in their place; `trace` itself is left as it is.

    The texts are those of `trace`, and what was set by hand there is set here too.

    Raises:
        TraceError: a part that the model does not have.
    """
    return rerun(checkpoint, trace.tokens, edit_without(parts, means, trace.edit))


def without_layer(checkpoint: Checkpoint, trace: Trace, layer: str) -> Trace:
    """The same tokens without a whole layer, "decoder.2": what comes in goes out.

    Raises:
        TraceError: a layer that the model does not have.
    """
    edit = trace.edit or Edit()
    return rerun(checkpoint, trace.tokens, replace(edit, skipped=edit.skipped | {layer}))


def sweep(
    checkpoint: Checkpoint,
    trace: Trace,
    row: int,
    token: int,
    means: Means | None = None,
    *,
    parts: Sequence[Part] | None = None,
    heard: Callable[[int, int], None] | None = None,
) -> tuple[Effect, ...]:
    """Takes out one part after the other.

    Args:
        row: of the output, where distributions are compared.
        token: whose logit and probability are followed.
        means: what takes the place of parts (`mean_outputs`); zero where nothing is said.
        parts: those of the model where nothing is said.
        heard: is told after each how many are done, and how many there are; what it raises ends the sweep.

    Raises:
        TraceError: no such row or token.
    """
    wanted = parts_of(trace) if parts is None else parts
    row, token = row_at(row, len(trace.logits)), token_id(token, trace.logits.shape[1])
    base, found = trace.logits, list[Effect]()
    for done, part in enumerate(wanted, start=1):
        found.append(effect(trace, part, base, without(checkpoint, trace, [part], means).logits, row, token))
        if heard is not None:
            heard(done, len(wanted))
    return tuple(found)


def effect(trace: Trace, part: Part, base: Tensor, other: Tensor, row: int, token: int) -> Effect:
    """Compares two sets of logits [n, vocab_size] of the same tokens."""
    (divergence,), (logit,), (probability,) = row_effects(base[row], other[row][None], token)
    losses = [_loss(trace, logits) for logits in (base, other)]
    return Effect(
        part,
        divergence=float(divergence),
        logit=float(logit),
        probability=float(probability),
        loss=None if losses[0] is None or losses[1] is None else losses[1] - losses[0],
    )


def _loss(trace: Trace, logits: Tensor) -> float | None:
    tokens = trace.tokens.get("decoder", ())
    if len(tokens) < 2:
        return None
    following = torch.tensor([token.id for token in tokens[1:]], device=logits.device)
    log_p = logits[: len(following)].double().log_softmax(-1)
    return -float(log_p.gather(1, following[:, None]).mean())


@dataclass(frozen=True)
class MassAndEffect:
    """How much a head looks, and how much it matters.

    Attributes:
        mass: what its query gives to the key that was chosen.
        divergence: KL(P || P') without it.
        mass_rank, effect_rank: its place among all heads of its kind of attention, 0 for the largest.
        disagrees: whether the two places are more than half of the heads apart.
    """

    part: Part
    mass: float
    divergence: float
    mass_rank: int
    effect_rank: int
    disagrees: bool


def mass_and_effect(
    trace: Trace, effects: Sequence[Effect], kind: str, query: int, key: int
) -> tuple[MassAndEffect, ...]:
    """Every head of one kind of attention, those first that matter most.

    Args:
        effects: of a sweep; those of other parts do not count.
        kind: "encoder", "decoder" or "cross".
        query, key: the row that looks, and the token that it looks at.
    """
    sites = {site for site in trace.sites if kind_of(site) == kind}
    heads = [one for one in effects if one.part.head is not None and one.part.sublayer in sites]
    masses = [float(trace[one.part.sublayer].pattern(one.part.head or 0)[query, key]) for one in heads]
    by_mass = _places(masses)
    by_effect = _places([one.divergence for one in heads])
    found = [
        MassAndEffect(one.part, mass, one.divergence, a, b, 2 * abs(a - b) > len(heads))
        for one, mass, a, b in zip(heads, masses, by_mass, by_effect, strict=True)
    ]
    return tuple(sorted(found, key=lambda one: one.effect_rank))


def _places(values: Sequence[float]) -> list[int]:
    order = np.argsort(-np.asarray(values), kind="stable")
    places = np.empty(len(order), dtype=int)
    places[order] = np.arange(len(order))
    return [int(place) for place in places]


def by_head(effects: Sequence[Effect], trace: Trace, kind: str) -> Float[ndarray, "n_layers n_heads"]:
    """KL(P || P') of every head of one kind of attention; NaN for those that were not taken out."""
    known = {(one.part.sublayer, one.part.head): one.divergence for one in effects}
    sites = [site for site in trace.sites if kind_of(site) == kind]
    return np.array([[known.get((site, head), np.nan) for head in range(trace[site].n_heads)] for site in sites])
