"""Where a token stands."""

import math

import pytest
import torch

from tests import tiny
from vizformer.model import Transformer
from vizformer.model.positions import sinusoidal_encoding


@pytest.mark.parametrize("d_model", [2, 16, 512])
def test_sinusoids_against_the_formula(d_model: int) -> None:
    encoding = sinusoidal_encoding(5000, d_model)
    assert encoding.shape == (5000, d_model)
    assert encoding.dtype == torch.float32
    for position in (0, 1, 2, 17, 999, 4999):
        for i in range(d_model // 2):
            angle = position / math.pow(10_000.0, 2 * i / d_model)
            assert abs(float(encoding[position, 2 * i]) - math.sin(angle)) < 1e-7
            assert abs(float(encoding[position, 2 * i + 1]) - math.cos(angle)) < 1e-7


def test_sinusoids_are_the_buffer_and_are_not_saved() -> None:
    model = tiny.model(max_positions=9)
    assert torch.equal(model.positions(5), sinusoidal_encoding(9, 16)[:5])
    assert "position_encoding" not in model.state_dict()


@pytest.mark.parametrize("scaled", [True, False])
def test_embeddings_plus_positions(scaled: bool) -> None:
    ids = tiny.ids(6)
    for positions in ("sinusoidal", "learned"):
        model = tiny.model(scaled_embedding=scaled, positions=positions)
        rows = model.embedding.weight[ids[0]] * (4.0 if scaled else 1.0)
        place = sinusoidal_encoding(6, 16) if positions == "sinusoidal" else model.position_embedding.weight[:6]
        tiny.assert_close(model.embed(ids)[0], rows + place, 1e-6)


def test_a_model_built_without_memory_gets_its_sinusoids() -> None:
    with torch.device("meta"):
        model = Transformer(tiny.config())
    assert not list(model.buffers())
    model.materialise_buffers()
    assert torch.equal(model.position_encoding, sinusoidal_encoding(32, 16))
