"""The numbers that a model begins its training with."""

import math

import pytest
import torch

from tests import tiny
from vizformer.model import Transformer
from vizformer.model.initialisation import without_memory


@pytest.mark.parametrize("scaled", [True, False])
def test_the_tables_of_tokens_begin_so_that_x_0_has_unit_scale(scaled: bool) -> None:
    """Both of them, where the source has its own; every other table begins with 0.02."""
    torch.manual_seed(0)
    wide = dict(d_model=64, d_ff=8, vocab_size=500, source_vocab_size=400, positions="learned", max_positions=200)
    model = Transformer(tiny.config(scaled_embedding=scaled, stack_inputs="own", **wide))
    of_tokens = 64**-0.5 if scaled else 0.02
    tables = {name: m.weight for name, m in model.named_modules() if isinstance(m, torch.nn.Embedding)}
    expected = {
        "embedding": of_tokens,
        "source_embedding": of_tokens,
        "position_embedding": 0.02,
        "decoder_position_embedding": 0.02,
    }
    assert tables.keys() == expected.keys()
    for name, std in expected.items():
        assert tables[name].std().item() == pytest.approx(std, rel=0.05), name


def test_tables_of_distances_and_segments_begin_small() -> None:
    torch.manual_seed(0)
    far = dict(relative_buckets=400, relative_max_distance=500)
    distances = Transformer(tiny.config("encoder-only", scaled_embedding=True, **{**tiny.T5, **far}))
    assert distances.encoder.relative_bias.weight.std().item() == pytest.approx(0.02, rel=0.05)
    segments = Transformer(tiny.config("encoder-only", scaled_embedding=True, n_segments=100))
    assert segments.segment_embedding.weight.std().item() == pytest.approx(0.02, rel=0.05)


def test_queries_keys_and_values_begin_as_if_they_were_one_matrix() -> None:
    torch.manual_seed(0)
    model = Transformer(tiny.config("decoder-only", d_model=64, n_kv_heads=2))
    attention, feedforward = model.decoder.layers[0].self_attention, model.decoder.layers[0].feedforward
    joint = math.sqrt(6 / (64 + 64 + 32 + 32))
    for projection in (attention.W_Q, attention.W_K, attention.W_V):
        assert projection.weight.abs().max().item() == pytest.approx(joint, rel=0.01)
        assert (projection.bias == 0).all()
    for alone, sizes in ((attention.W_O, 64 + 64), (feedforward.W_in, 64 + 24)):
        assert alone.weight.abs().max().item() == pytest.approx(math.sqrt(6 / sizes), rel=0.01)


def test_without_memory_a_model_has_the_same_shapes_and_no_numbers() -> None:
    usual = tiny.model("encoder-decoder")
    with without_memory():
        empty = Transformer(usual.config)
    assert all(parameter.is_meta for parameter in empty.parameters())
    assert {name: tensor.shape for name, tensor in empty.state_dict().items()} == {
        name: tensor.shape for name, tensor in usual.state_dict().items()
    }
    assert not any(parameter.is_meta for parameter in Transformer(usual.config).parameters())  # it is over
