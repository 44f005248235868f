"""The bytes that are shown are those that a model's cache has."""

import pytest
import torch

from tests import tiny
from vizformer.analysis.costs.state_bytes import deepseek_v3, kept_bytes, qwen3_next
from vizformer.config import ModelConfig
from vizformer.model import Cache


@pytest.mark.parametrize("options", [tiny.HYBRID, {**tiny.HYBRID, "state_layers": (0, 1)}, tiny.MAMBA2, tiny.LLAMA])
def test_the_bytes_are_those_of_a_cache_that_was_filled(options: dict) -> None:
    model = tiny.model("decoder-only", **options)
    for n in (4, 11):
        cache = Cache()
        with torch.inference_mode():
            model.decode(tiny.ids(n), cache=cache)
        assert kept_bytes(model.config, n, number_bytes=4).total == cache.nbytes


def test_published_shapes() -> None:
    assert kept_bytes(ModelConfig.preset("gpt3-175b"), 2048).total == 2 * 96 * 96 * 128 * 2048 * 2
    windowed = ModelConfig.preset("mistral-7b")
    assert kept_bytes(windowed, 4096) == kept_bytes(windowed, 10**6)
    hybrid, plain = qwen3_next(), qwen3_next(attention_only=True)
    assert kept_bytes(hybrid, 10).state == kept_bytes(hybrid, 10**6).state == 36 * (32 * 128 * 128 * 4 + 8192 * 3 * 2)
    assert 4 * kept_bytes(hybrid, 1000).cache == kept_bytes(plain, 1000).total == 1000 * 48 * 2048
    assert kept_bytes(deepseek_v3(), 1).total == 61 * (512 + 64) * 2 == 70_272
    assert kept_bytes(deepseek_v3(keys_and_values=True), 1).total == 61 * 128 * (192 + 128) * 2
