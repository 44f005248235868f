"""How many numbers a model has, against the sums that one can do on paper."""

import pytest

from tests import tiny
from vizformer.config import ModelConfig
from vizformer.model import Transformer, count_parameters
from vizformer.model.block import Block


@pytest.mark.parametrize(
    ("preset", "changes", "expected"),
    [
        ("transformer-base", {}, 63_082_496),
        ("transformer-base", dict(bias=False), 63_014_912),
        ("gpt2-small", {}, 124_439_808),
        ("bert-base", {}, 109_514_298),  # BertForMaskedLM of bert-base-uncased
        ("llama-7b", {}, 6_738_415_616),
    ],
)
def test_presets(preset: str, changes: dict[str, bool], expected: int) -> None:
    assert count_parameters(ModelConfig.preset(preset, **changes)) == expected


def sizes(block: Block) -> dict[str, int]:
    counted: dict[str, int] = {}
    for name, parameter in block.named_parameters():
        part = name.split(".")[0]
        counted[part] = counted.get(part, 0) + parameter.numel()
    return counted


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("d", "d_ff"), [(512, 2048), (16, 24)])
def test_layers(bias: bool, d: int, d_ff: int) -> None:
    config = tiny.config(d_model=d, d_ff=d_ff, bias=bias)
    attention = 4 * d**2 + (4 * d if bias else 0)
    feedforward = 2 * d * d_ff + (d_ff + d if bias else 0)
    encoder, decoder = sizes(Block(config, cross=False)), sizes(Block(config, cross=True))
    assert encoder.pop("self_attention") == attention
    assert encoder.pop("feedforward") == feedforward
    assert sum(encoder.values()) == 4 * d  # two norms, a weight and a bias each
    assert (decoder.pop("self_attention"), decoder.pop("cross_attention")) == (attention, attention)
    assert decoder.pop("feedforward") == feedforward
    assert sum(decoder.values()) == 6 * d


def test_the_papers_decoder() -> None:
    """A common lecture table says 24.5 M for the base model's six decoder layers."""
    block = Block(ModelConfig.preset("transformer-base"), cross=True)
    assert 6 * sum(p.numel() for p in block.parameters()) == 25_224_192


def test_what_each_option_adds() -> None:
    base = count_parameters(tiny.config())
    assert count_parameters(tiny.config(final_norm=True)) == base + 2 * 2 * 16  # one per stack
    assert count_parameters(tiny.config(tied_unembedding=False)) == base + 29 * 16
    assert count_parameters(tiny.config(positions="learned")) == base + 32 * 16
    assert count_parameters(tiny.config(positions="relative")) == base + 2 * 32 * 4  # buckets x heads, one per stack
    assert count_parameters(tiny.config(positions="alibi")) == base
    assert count_parameters(tiny.config(max_positions=500)) == base  # sinusoids are computed, not learned


def test_counting_needs_no_memory_but_agrees_with_a_real_model() -> None:
    real = Transformer(tiny.config())
    assert count_parameters(tiny.config()) == sum(p.numel() for p in real.parameters())
    assert count_parameters(tiny.config(vocab_size=10**9, d_model=1024, n_heads=4)) > 10**12
