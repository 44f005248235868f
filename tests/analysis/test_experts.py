"""Mixture of experts: the arithmetic gives Mixtral's published sizes."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from tests import tiny
from vizformer.analysis.costs.generation_cost import forward_pass
from vizformer.analysis.costs.model_costs import mixture, model_cost, own_mixture, parameters
from vizformer.config import ModelConfig
from vizformer.model import count_parameters

MISTRAL = ModelConfig.preset("mistral-7b")


def test_mixtral_has_as_many_parameters_as_its_authors_say() -> None:
    found = mixture(
        MISTRAL, 8, 2
    )  # the same layers, each with eight feed-forward networks (Jiang et al. 2024, Table 1)
    assert found.total == 46_702_792_704  # counted on the published files: "47B"
    assert found.active == pytest.approx(12.9e9, rel=0.005)  # the announcement; the paper rounds to 13B


def test_one_expert_is_the_model_itself() -> None:
    for config in (MISTRAL, tiny.config(), ModelConfig.preset("bert-base")):
        found = mixture(config, 1, 1)
        assert found.total == found.active == count_parameters(config)


def test_more_experts_are_stored_but_not_used() -> None:
    few, many = mixture(MISTRAL, 4, 2), mixture(MISTRAL, 16, 2)
    assert many.total - few.total == 32 * 12 * few.expert + many.router - few.router
    assert many.active - few.active == many.router - few.router == 32 * 12 * 4096
    with pytest.raises(ValueError, match="cannot be used"):
        mixture(MISTRAL, 2, 3)


@pytest.mark.parametrize(
    "options",
    [tiny.MIXTRAL, {**tiny.QWEN2_MOE, "n_decoder_layers": 4, "expert_layers": (1, 3)}, tiny.GEMMA4_EXPERTS],
)
def test_a_model_that_has_experts_is_counted_with_them(options: dict[str, Any]) -> None:
    """Against the model itself: all parameters, and those left when every layer has only as many experts as are used."""
    config = tiny.config("decoder-only", **options)
    found = own_mixture(config)
    assert found is not None
    assert found.total == sum(parameters(config).values()) == count_parameters(config)
    used = replace(config, n_experts=config.experts_per_token)
    n_layers, idle = config.n_expert_layers, (config.n_experts or 0) - config.experts_per_token
    rows = config.d_model + config.expert_norms  # all rows of the router, and numbers by which weights are multiplied
    assert found.active == count_parameters(used) + n_layers * idle * rows
    assert model_cost(config, 5).rule_of_thumb(10) == 60 * found.active
    assert own_mixture(config.without_experts()) is None


@pytest.mark.parametrize(
    "options", [tiny.MIXTRAL, {**tiny.QWEN2_MOE, "n_decoder_layers": 3, "bias": True}, tiny.GEMMA4_EXPERTS]
)
def test_multiplications_are_those_of_the_products_that_are_computed(options: dict[str, Any]) -> None:
    """Every linear layer of the feed-forward sublayers is watched: rows x inputs x outputs, and a weight for each output."""
    model, n = tiny.model("decoder-only", **options), 7
    counted = 0

    def watch(module: torch.nn.Linear, given: tuple[torch.Tensor, ...], _: torch.Tensor) -> None:
        nonlocal counted
        counted += given[0].numel() // module.in_features * module.in_features * module.out_features

    for name, module in model.named_modules():
        if ".feedforward." in name and isinstance(module, torch.nn.Linear):
            module.register_forward_hook(watch)
    model(tiny.ids(n))
    config = model.config
    weighed = config.experts_per_token + (config.d_shared_expert is not None and config.shared_expert_gate)
    found = forward_pass(config, n).feedforward
    assert found == counted + config.n_expert_layers * n * weighed * config.d_model
