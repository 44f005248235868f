"""What the page A layer by hand says of nn.Transformer holds for the PyTorch that is installed."""

import warnings

import pytest
import torch

from vizformer.explain.toy_model import toy
from vizformer.web.pages.layer import CODE, NAMES


@pytest.fixture(scope="module")
def done() -> dict[str, object]:
    names: dict[str, object] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of nested tensors, which the quick way uses inside
        exec(CODE, names)
    return names


def test_the_names_and_shapes_are_those_of_the_layer(done):
    state = done["layer"].state_dict()
    for names, shape, __ in NAMES:
        for name in names.split(", "):
            assert " × ".join(map(str, state[name].shape)) == shape


def test_a_third_of_the_tensor_is_the_transposed_matrix_of_the_queries(done):
    queries = toy().trace["encoder.0.self"].q  # [heads, n, d_head]
    assert done["q"][0].shape == queries.shape
    assert torch.allclose(done["q"][0], queries, atol=1e-6)


def test_rows_of_padding_are_zeros_only_on_the_quick_way(done):
    assert not done["tested"][0, 2].any()
    assert done["trained"][0, 2].abs().min() > 0.1
    assert torch.allclose(done["trained"][0, :2], done["tested"][0, :2], atol=1e-5)


def test_the_two_masks_mean_the_opposite(done):
    attention = done["layer"].self_attn
    q, k, v = (torch.randn(3, 1, 4) for _ in range(3))
    __, weights = attention(q, k, v, key_padding_mask=done["padding"])
    assert not weights[0, :, 2].any()
    seen = torch.nn.functional.scaled_dot_product_attention(done["q"], done["k"][:, :, :2], done["v"][:, :, :2])
    assert torch.allclose(done["z"], seen, atol=1e-6)
