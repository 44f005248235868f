"""Mixture of experts as arithmetic: every layer has E feed-forward networks, of which each token goes through k.

    total    others + layers (E feedforward + E d_model)        E d_model: the router, one score for each expert
    active   others + layers (k feedforward + E d_model)

Source: Shazeer et al. 2017, "Outrageously Large Neural Networks", section 2; Jiang et al. 2024, "Mixtral of Experts",
section 2.1.
"""

from dataclasses import dataclass

from vizformer.analysis.costs.model_costs import parameters
from vizformer.config import ModelConfig


@dataclass(frozen=True)
class Mixture:
    """Parameters of a model whose layers have experts: all, of one network (`expert`), of all routers, and `active` ones:

    that a token is multiplied with (embeddings counted whole).
    """

    total: int
    active: int
    expert: int
    router: int


def own_mixture(config: ModelConfig) -> Mixture | None:
    """The model with the experts that it has; None where it has none.  A shared expert belongs to the other parameters."""
    if config.n_experts is None:
        return None
    total = sum(parameters(config).values())
    router = config.n_expert_layers * config.n_experts * config.d_model
    expert = config.network_parameters(config.expert_width)
    return Mixture(total, total - config.idle_parameters, expert, router)


def mixture(config: ModelConfig, experts: int, top_k: int) -> Mixture:
    """The model with its feed-forward networks taken `experts` times, `top_k` of them used; 1 and 1: as it is.

    One that has experts is taken with one network of width d_ff in each layer in their place.

    Raises:
        ValueError: fewer than one expert, or more used than there are.
    """
    if not 1 <= top_k <= experts:
        raise ValueError(f"{top_k} of {experts} experts cannot be used")
    config = config.without_experts()
    layers = config.depth
    expert, whole = config.network_parameters(config.d_ff), sum(parameters(config).values())
    router = layers * experts * config.d_model if experts > 1 else 0
    others = whole - layers * expert + router
    return Mixture(others + layers * experts * expert, others + layers * top_k * expert, expert, router)
