"""Decoding piece by piece with the KV cache gives what one full forward gives."""

import pytest
import torch

from tests import tiny
from vizformer.model import Cache

IDS = torch.tensor([[3, 7, 5, 9, 4, 6], [8, 3, 3, 5, 7, 9]])
SOURCE = torch.tensor([[4, 5, 6, 7], [9, 8, 7, 3]])


@pytest.mark.parametrize("architecture", ["decoder-only", "encoder-decoder"])
@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rope", "alibi", "relative"])
@pytest.mark.parametrize("norm_order", ["pre", "post"])
@pytest.mark.parametrize("cuts", [(1, 1, 1, 1, 1, 1), (3, 1, 2), (6,)])
@pytest.mark.sample(20)
def test_cached_equals_uncached(architecture, positions, norm_order, cuts):
    model = tiny.model(architecture, positions=positions, norm_order=norm_order, final_norm=True)
    memory = model.encode(SOURCE) if architecture == "encoder-decoder" else None
    whole = model.decode(IDS, memory)
    cache, parts = Cache(), []
    for part in IDS.split(cuts, dim=1):
        parts.append(model.decode(part, memory, cache=cache))
    torch.testing.assert_close(torch.cat(parts, dim=1), whole, rtol=1e-5, atol=1e-5)  # another order of summation
    assert cache.length == 6
    assert cache.keys["decoder.0.self"].shape[2] == 6


def test_padding_of_the_memory_is_seen_through_the_cache():
    model = tiny.model("encoder-decoder")
    padding = torch.tensor([[False, False, True, True], [False] * 4])
    memory = model.encode(SOURCE, padding=padding)
    whole = model.decode(IDS, memory, memory_padding=padding)
    cache = Cache()
    parts = [model.decode(IDS[:, i : i + 1], memory, memory_padding=padding, cache=cache) for i in range(6)]
    torch.testing.assert_close(torch.cat(parts, dim=1), whole, rtol=1e-5, atol=1e-5)


def test_select_keeps_and_doubles_sequences():
    model = tiny.model("decoder-only")
    cache = Cache()
    model.decode(IDS[:, :3], cache=cache)
    cache.select(torch.tensor([1, 1]))
    following = torch.tensor([[4], [5]])
    expected = model.decode(torch.cat([IDS[1:].expand(2, -1)[:, :3], following], dim=1))[:, -1:]
    torch.testing.assert_close(model.decode(following, cache=cache), expected, rtol=1e-5, atol=1e-5)


def test_bytes_grow_with_the_length():
    model = tiny.model("decoder-only")
    config, cache = model.config, Cache()
    for length in (1, 2, 3):
        model.decode(IDS[:1, length - 1 : length], cache=cache)
        assert cache.nbytes == 2 * config.n_decoder_layers * config.n_heads * config.d_head * length * 4
