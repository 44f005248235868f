"""The numbers of a mixture of experts: router, choice, the chosen networks, their weighted sum.

    p = softmax(x W_router + b_router),   T = the k largest of p,   y = sum_{e in T} g_e FFN_e(x) (+ sigmoid(x w_shared) FFN_shared(x))

Which experts were chosen is read from the trace: where two scores are the same but for the rounding, a recomputation
could choose the other one and go on with another network.  The choice itself has a proof of its own.

Source: Shazeer et al. 2017, "Outrageously Large Neural Networks", section 2; Jiang et al. 2024, "Mixtral of Experts", 2.1.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy import ndarray

from vizformer.explain.arrays import float64, is_half, softmax, stored, was_edited
from vizformer.explain.feedforward_rows import FeedForwardNumbers, feedforward_numbers
from vizformer.explain.norms import normalise
from vizformer.explain.sublayer import bias_of
from vizformer.model.experts import MixtureOfExperts
from vizformer.model.feedforward import FeedForward
from vizformer.model.trace import Trace


@dataclass(frozen=True)
class MixtureNumbers:
    """What a mixture of experts computes of some rows."""

    # what the router, the experts and the shared expert read: the rows, or each what its norm makes of them
    of_router: Float[ndarray, "n d_model"]
    of_experts: Float[ndarray, "n d_model"]
    of_shared: Float[ndarray, "n d_model"]
    scores: Float[ndarray, "n n_experts"]  # of_router W_router (+ b_router)
    probabilities: Float[ndarray, "n n_experts"]  # their softmax, or the sigmoid of each
    # by what experts are chosen: the probabilities, or these corrected, -inf outside of the best groups
    preferred: Float[ndarray, "n n_experts"]
    chosen: Int[ndarray, "n k"]  # the numbers of the chosen experts, the most preferred first
    kept: Float[ndarray, "n k"]  # the probabilities of the chosen ones
    shares: Float[ndarray, "n k"]  # kept, or kept over its sum
    # by which their outputs, or what enters them, are multiplied: the shares, or a multiple of them
    weights: Float[ndarray, "n k"]
    # of the first choices of all rows, of the second ones, ...: each row in the expert that it chose
    networks: tuple[FeedForwardNumbers, ...]
    mixed: Float[ndarray, "n d_model"]  # the weighted sum
    found: Float[ndarray, "n d_model"]  # that, normalised where the model does so
    # how much of the shared expert is added; None where all of it is, and where there is none
    opened: Float[ndarray, " n"] | None
    shared: FeedForwardNumbers | None  # what that computes
    shared_found: Float[ndarray, "n d_model"] | None  # its output, normalised where the model does so
    out: Float[ndarray, "n d_model"]  # the result


def mixture_numbers(
    x: Float[ndarray, "n d_model"], network: MixtureOfExperts, trace: Trace, site: str, rows: slice = slice(None)
) -> MixtureNumbers:
    """All of it in float64, rounded where the model rounds; `rows` are those of the trace that `x` are.

    Scores that were set by hand, or that a model in half precision has rounded, are taken as they were recorded.
    """
    routing = trace.routing(site)
    dtype, norms = routing.scores.dtype, network.norms
    of_router = of_experts = of_shared = x
    if norms is not None:
        of_router = stored(normalise(x, norms.router) * x.shape[1] ** -0.5, dtype)
        of_experts, of_shared = normalise(x, norms.experts), normalise(x, norms.shared)
    scores = stored(of_router @ float64(network.router.weight).T + bias_of(network.router), dtype)
    as_recorded = is_half(dtype) or was_edited(trace, f"{site}.router")
    entering = float64(routing.scores[rows]) if as_recorded else scores
    probabilities = 1.0 / (1.0 + np.exp(-entering)) if network.scores == "sigmoid" else softmax(entering)
    preferred = float64(network.preferred(torch.from_numpy(probabilities).to(routing.scores.device)))
    chosen = routing.chosen[rows].cpu().numpy()
    kept = np.take_along_axis(probabilities, chosen, axis=1)
    shares = kept / kept.sum(1, keepdims=True) if network.renormalised else kept
    weights = shares * expert_factors(network, chosen)
    inputs, outputs = (weights, np.ones_like(weights)) if network.inputs_weighed else (np.ones_like(weights), weights)
    networks = tuple(
        _choice(stored(inputs[:, [c]] * of_experts, dtype), network, of_all, dtype) for c, of_all in enumerate(chosen.T)
    )
    mixed = np.sum([outputs[:, [c]] * found.out for c, found in enumerate(networks)], axis=0)
    mixed = mixed if norms is None else stored(mixed, dtype)
    found = mixed if norms is None else normalise(mixed, norms.experts_output)
    opened, shared, shared_found, out = None, None, None, found
    if network.shared is not None:
        shared = feedforward_numbers(of_shared, network.shared, dtype)
        shared_found = shared.out if norms is None else normalise(shared.out, norms.shared_output)
        if network.shared_gate is not None:
            closed = stored(x @ float64(network.shared_gate.weight[0]), dtype)
            opened = stored(1.0 / (1.0 + np.exp(-closed)), dtype)
        out = found + (shared_found if opened is None else opened[:, None] * shared_found)
    return MixtureNumbers(
        of_router,
        of_experts,
        of_shared,
        scores,
        probabilities,
        preferred,
        chosen,
        kept,
        shares,
        weights,
        networks,
        mixed,
        found,
        opened,
        shared,
        shared_found,
        stored(out, dtype),
    )


def expert_factors(network: MixtureOfExperts, chosen: Int[ndarray, "n k"]) -> Float[ndarray, "#n #k"]:
    """By what the shares of the chosen experts are multiplied: one number, or one for each expert."""
    each = np.ones((1, 1)) if network.expert_scales is None else float64(network.expert_scales)[chosen]
    return each * network.scale


def expert(network: MixtureOfExperts, number: int) -> FeedForward:
    """One of the experts."""
    found = network.experts[number]
    assert isinstance(found, FeedForward)
    return found


def _choice(
    x: Float[ndarray, "n d_model"], network: MixtureOfExperts, chosen: Int[ndarray, " n"], dtype: torch.dtype
) -> FeedForwardNumbers:
    """Every row through the expert that it chose; one expert's weights at a time are copied."""
    parts: dict[str, ndarray] = {}
    for number in np.unique(chosen):
        rows = chosen == number
        found = feedforward_numbers(x[rows], expert(network, int(number)), dtype)
        for name, value in vars(found).items():
            parts.setdefault(name, np.zeros((len(x), value.shape[1])))[rows] = value
    return FeedForwardNumbers(**parts)
