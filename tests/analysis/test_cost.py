"""Multiplications against PyTorch's own count of the real forwards, and cache bytes against the real cache."""

from contextlib import ExitStack

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from tests import tiny
from vizformer.analysis.costs.generation_cost import (
    Multiplications,
    cache_bytes,
    encoder_pass,
    generation_costs,
    rolling_cache_bytes,
    text_costs,
)
from vizformer.generation import stream
from vizformer.model import Cache, Edit, Transformer

MODELS = {
    "encoder-decoder": dict(architecture="encoder-decoder"),
    "decoder-only": dict(architecture="decoder-only", positions="learned"),
    "LLaMA style": dict(architecture="decoder-only", **tiny.LLAMA),
    "shared heads in an encoder-decoder": dict(architecture="encoder-decoder", n_kv_heads=1, n_decoder_layers=3),
    "gated, with a transform": dict(architecture="decoder-only", feedforward="gated", head="transform", d_ff=40),
}
SOURCE, STEPS = [3, 4, 5, 6, 7], 4


def counted(run) -> int:
    """Multiplications that PyTorch saw: a flop of its count is a multiplication or an addition."""
    with ExitStack() as stack:
        stack.enter_context(sdpa_kernel(SDPBackend.MATH))  # the counter does not know the CPU's fused kernel
        counter = stack.enter_context(FlopCounterMode(display=False))
        run()
    return int(counter.get_total_flops()) // 2


def build(options: dict) -> tuple[Transformer, list[int], list[int]]:
    options = dict(options)
    model = tiny.model(options.pop("architecture"), eos_id=None, **options)
    return model, SOURCE, [1, 8] if model.encoder is not None else []


@pytest.mark.slow
@pytest.mark.parametrize("cached", [True, False], ids=["cached", "uncached"])
@pytest.mark.parametrize("options", MODELS.values(), ids=MODELS)
@pytest.mark.sample(7)
def test_the_count_is_that_of_the_forwards(options: dict, cached: bool) -> None:
    model, prompt, prefix = build(options)
    memory = len(SOURCE) if model.encoder is not None else 0
    costs = generation_costs(model.config, len(prefix or prompt), STEPS, memory, cached=cached)
    assert len(costs) == STEPS

    def run() -> None:
        edit = None if cached else Edit()  # an edit, even an empty one, is a full forward per step
        for _ in stream(model, prompt, prefix, max_new=STEPS, edit=edit):
            pass

    assert sum(cost.total for cost in costs) == counted(run)


@pytest.mark.parametrize("options", MODELS.values(), ids=MODELS)
@pytest.mark.sample(2)
def test_each_step_and_each_part(options: dict) -> None:
    """Step by step, with the logits counted apart."""
    model, prompt, prefix = build(options)
    c, memory = model.config, len(SOURCE) if model.encoder is not None else 0
    costs = generation_costs(c, len(prefix or prompt), STEPS, memory, cached=True)
    cache, ids = Cache(), list(prefix or prompt)
    with torch.inference_mode():
        encoded = model.encode(torch.tensor([prompt])) if memory else None
        for step, cost in enumerate(costs):
            rest = cost.total - cost.unembedding
            if step == 0 and memory:
                rest -= encoder_pass(c, memory).total
                assert encoder_pass(c, memory).total == counted(lambda: model.encode(torch.tensor([prompt])))
            new = torch.tensor([ids[cache.length :]])
            x = []
            assert rest == counted(lambda: x.append(model.decode(new, encoded, cache=cache)))  # noqa: B023
            assert cost.unembedding == counted(lambda: model.logits(x[0][:, -1]))  # noqa: B023
            assert cache.nbytes == cache_bytes(c, len(ids), memory)
            ids.append(3)


def test_by_hand() -> None:
    c = tiny.config("decoder-only", d_model=8, n_heads=2, d_ff=32, n_decoder_layers=1, vocab_size=10)
    first, second = generation_costs(c, 3, 2, cached=True)
    assert first == Multiplications(2 * 3 * 3 * 8, 4 * 3 * 8 * 8, 2 * 3 * 8 * 32, 8 * 10)
    assert second == Multiplications(2 * 1 * 4 * 8, 4 * 1 * 8 * 8, 2 * 1 * 8 * 32, 8 * 10)
    again = generation_costs(c, 3, 2, cached=False)[1]
    assert again == Multiplications(2 * 4 * 4 * 8, 4 * 4 * 8 * 8, 2 * 4 * 8 * 32, 8 * 10)
    assert again.total == 256 + 1024 + 2048 + 80
    assert (first + second).attention == first.attention + second.attention


def test_attention_is_the_smaller_part_of_short_texts() -> None:
    """What the page says: n^3 against n^2 alone would mislead at these lengths."""
    c = tiny.config("decoder-only", d_model=256, n_heads=8, n_kv_heads=4, d_ff=640, n_decoder_layers=5, vocab_size=6000)
    costs = generation_costs(c, 10, 50, cached=False)
    total = sum(costs, Multiplications())
    assert total.attention < 0.15 * total.total


@pytest.mark.parametrize("length", [2, 3, 7])
@pytest.mark.parametrize("layers", [None, (1,)])
def test_what_a_window_would_save(length: int, layers: tuple[int, ...] | None) -> None:
    """The bytes of the newest keys and values; the others could be anything, no query that comes reads them."""
    model = tiny.model("decoder-only", **tiny.LLAMA, sliding_window=3, sliding_layers=layers)
    config, ids, cache = model.config, tiny.ids(8), Cache()
    model.decode(ids[:, :length], cache=cache)
    kept = 0
    for tensors in (cache.keys, cache.values):
        for site, tensor in tensors.items():
            if int(site.split(".")[1]) in config.windowed_layers:
                tensor[:, :, :-3] = 1e3
                tensor = tensor[:, :, -3:]
            kept += tensor.numel() * tensor.element_size()
    assert rolling_cache_bytes(config, length) == kept
    assert (kept < cache.nbytes) == (length > 3)
    torch.testing.assert_close(model.decode(ids[:, length:], cache=cache), model.decode(ids)[:, length:])


def test_without_a_window_nothing_can_be_forgotten() -> None:
    c = tiny.config("decoder-only")
    assert rolling_cache_bytes(c, 100) == cache_bytes(c, 100)


def test_the_costs_of_a_text_are_those_of_its_steps() -> None:
    c = tiny.config("decoder-only", **tiny.LLAMA, sliding_window=3)
    found, cached, uncached = text_costs(c, 3, 5), *(generation_costs(c, 3, 5, cached=kept) for kept in (True, False))
    assert found.cached[:, 0].tolist() == [cost.attention for cost in cached]
    assert found.uncached.sum(1).tolist() == [cost.total for cost in uncached]
    assert found.cache_bytes.tolist() == [cache_bytes(c, 3 + step) for step in range(5)]
    assert found.rolling_bytes.tolist() == [rolling_cache_bytes(c, 3 + step) for step in range(5)]
    assert found.memory_bytes == 0
    first = sum(cached[:3], Multiplications())
    assert found.up_to(2) == (
        first.total,
        sum(cost.total for cost in uncached[:3]),
        pytest.approx(first.attention / first.total),
    )


def test_the_source_stays_in_the_cache_of_a_translation() -> None:
    c = tiny.config("encoder-decoder")
    found = text_costs(c, 1, 4, memory=7)
    assert found.memory_bytes == cache_bytes(c, 0, 7) > 0
    assert found.cached.sum(1).tolist() == [cost.total for cost in generation_costs(c, 1, 4, 7, cached=True)]
    assert found.cache_bytes[3] == cache_bytes(c, 4, 7)
