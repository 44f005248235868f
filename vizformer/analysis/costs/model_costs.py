"""What a model of any configuration costs: parameters, multiplications, cache, training.

    training    6 M D / n      D tokens, M multiplications of one forward over n tokens, n logits included

A multiplication comes with an addition (2 FLOPs), and the backward pass takes twice the forward one (3 in all).

Source: Kaplan et al. 2020, "Scaling Laws for Neural Language Models", section 2.1.

Mixture of experts as arithmetic: every layer has E feed-forward networks, of which each token goes through k.

    total    others + layers (E feedforward + E d_model)        E d_model: the router, one score for each expert
    active   others + layers (k feedforward + E d_model)

Source: Shazeer et al. 2017, "Outrageously Large Neural Networks", section 2; Jiang et al. 2024, "Mixtral of Experts",
section 2.1.
"""

from dataclasses import dataclass, replace
from functools import lru_cache

from vizformer.analysis.costs import parameter_count
from vizformer.analysis.costs.generation_cost import (
    FLOAT_BYTES,
    Multiplications,
    cache_bytes,
    forward_pass,
)
from vizformer.config import ModelConfig
from vizformer.model import Transformer, without_memory

FLOPS_PER_MULTIPLICATION = 6  # in training: a multiplication and an addition, forward once and backward twice


@lru_cache(maxsize=256)
def parameters(config: ModelConfig) -> dict[str, int]:
    """Parameters by "<section>.<kind>" (`parameter_count.parts`); read only.

    Counted on models of one and of two layers without memory: all layers of a stack are alike, and a model of 96
    takes long to make.
    """
    one, two = (_parts(config, depth) for depth in (1, 2))
    found = {}
    for name, count in one.items():
        section = name.split(".")[0]
        depth = {"encoder": config.n_encoder_layers, "decoder": config.n_decoder_layers}.get(section, 1)
        found[name] = count + (two[name] - count) * (depth - 1)
    return found


def _parts(config: ModelConfig, depth: int) -> dict[str, int]:
    shallow = replace(
        config,
        n_encoder_layers=min(depth, config.n_encoder_layers),
        n_decoder_layers=min(depth, config.n_decoder_layers),
        sliding_layers=None,
    )
    with without_memory():
        return parameter_count.parts(Transformer(shallow))


@dataclass(frozen=True)
class ModelCost:
    """The costs of a model for texts of n tokens."""

    parameters: dict[str, int]  # by "<section>.<kind>"
    n: int
    forward: Multiplications  # multiplications of one forward over n tokens, with the logits of all of them
    kv_numbers: int  # keys and values of n tokens; 0 of a model that writes nothing
    kv_numbers_per_token: int  # what one more token adds

    @property
    def total(self) -> int:
        """All parameters."""
        return sum(self.parameters.values())

    def training_flops(self, tokens: float) -> float:
        """The FLOPs of a training on D = `tokens` tokens: 6 M D / n."""
        return FLOPS_PER_MULTIPLICATION * self.forward.total * tokens / self.n


def model_cost(config: ModelConfig, n: int) -> ModelCost:
    """The costs for n tokens; an encoder-decoder reads n and writes n."""
    memory = n if config.architecture == "encoder-decoder" else 0
    writes = config.n_decoder_layers > 0
    held, more = (cache_bytes(config, length, memory) // FLOAT_BYTES if writes else 0 for length in (n, n + 1))
    return ModelCost(
        parameters(config),
        n,
        forward_pass(config, n),
        held,
        more - held,
    )


@dataclass(frozen=True)
class Mixture:
    """Parameters of a model whose layers would have experts: all, of one network (`expert`), of all routers, and `active`

    ones, that a token is multiplied with (embeddings counted whole).
    """

    total: int
    active: int
    expert: int
    router: int


def mixture(config: ModelConfig, experts: int, top_k: int) -> Mixture:
    """The model with its feed-forward networks taken `experts` times, `top_k` of them used; 1 and 1: as it is.

    Raises:
        ValueError: fewer than one expert, or more used than there are.
    """
    if not 1 <= top_k <= experts:
        raise ValueError(f"{top_k} of {experts} experts cannot be used")
    layers = config.depth
    expert, whole = config.network_parameters(config.d_ff), sum(parameters(config).values())
    router = layers * experts * config.d_model if experts > 1 else 0
    others = whole - layers * expert + router
    return Mixture(others + layers * experts * expert, others + layers * top_k * expert, expert, router)
