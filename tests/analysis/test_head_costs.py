"""Costs of heads, against the counts of whole passes, modules that were built, and a cache that was filled."""

from dataclasses import replace

import pytest
import torch

from tests import tiny
from vizformer.analysis.costs.generation_cost import possible_groups, sharing_cost
from vizformer.config import ModelConfig
from vizformer.model import Cache, Transformer

BASE = ModelConfig.preset("transformer-base")


def test_groups_divide_the_heads() -> None:
    assert possible_groups(replace(BASE, n_heads=8)) == (1, 2, 4, 8)
    assert possible_groups(tiny.config("encoder-only", d_model=18, n_heads=6)) == (1, 2, 3, 6)


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_the_bytes_are_those_of_a_filled_cache(groups: int) -> None:
    config = tiny.config("decoder-only", **{**tiny.LLAMA, "n_kv_heads": groups})
    model, cache = tiny.model("decoder-only", **{**tiny.LLAMA, "n_kv_heads": groups}), Cache()
    with torch.no_grad():
        model.decode(tiny.ids(7), None, cache=cache)
    held = cache.nbytes
    found = sharing_cost(tiny.config("decoder-only", **tiny.LLAMA), groups, 7)
    assert found.cache_bytes == held
    assert found.token_bytes == held // 7
    assert found.model_parameters == sum(p.numel() for p in Transformer(config).parameters())


def test_the_source_is_in_the_cache_but_does_not_grow() -> None:
    one, two = (sharing_cost(BASE, 8, length, memory=5) for length in (3, 4))
    assert two.cache_bytes - one.cache_bytes == one.token_bytes
    assert sharing_cost(BASE, 8, 3).cache_bytes < one.cache_bytes


def test_an_encoder_is_counted_as_the_decoder_that_it_could_be() -> None:
    config = tiny.config("encoder-only", **tiny.BERT)
    found = sharing_cost(config, 2, 5)
    assert found.cache_bytes == 2 * config.n_encoder_layers * 2 * config.d_head * 5 * 4
