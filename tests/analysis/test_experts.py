"""Mixture of experts: the arithmetic gives Mixtral's published sizes."""

import pytest

from tests import tiny
from vizformer.analysis.experts import mixture
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
