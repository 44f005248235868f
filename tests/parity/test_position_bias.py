"""T5's buckets and biases and ALiBi's slopes against those of `transformers`."""

import pytest
import torch

from vizformer.model.positions import alibi_bias, alibi_slopes, relative_bias, relative_buckets

SIZES = [(32, 128), (8, 6), (8, 16), (16, 64), (10, 30), (32, 256), (64, 1000)]
both = pytest.mark.parametrize("both_sides", [True, False])


@both
@pytest.mark.parametrize(("buckets", "furthest"), SIZES)
def test_every_distance(buckets: int, furthest: int, both_sides: bool) -> None:
    from transformers.models.t5.modeling_t5 import T5Attention

    relative = torch.arange(-1500, 1501)[None]
    theirs = T5Attention._relative_position_bucket(relative, both_sides, buckets, furthest)
    assert torch.equal(relative_buckets(relative, buckets, furthest, both_sides=both_sides), theirs)


@both
def test_the_bias_of_a_t5_stack(both_sides: bool) -> None:
    from transformers import T5Config
    from transformers.models.t5.modeling_t5 import T5Attention

    config = T5Config(d_model=16, d_kv=4, num_heads=4, is_decoder=not both_sides)
    theirs = T5Attention(config, has_relative_attention_bias=True, layer_idx=0)
    table = theirs.relative_attention_bias.weight.detach()
    assert table.shape == (32, 4)
    expected = theirs.compute_bias(150, 150).detach()
    assert torch.equal(relative_bias(table, 150, 150, both_sides=both_sides), expected)
    assert torch.equal(relative_bias(table, 1, 150, both_sides=both_sides), expected[:, :, -1:])


@pytest.mark.parametrize("n_heads", [1, 2, 6, 8, 12, 16, 20])
def test_the_bias_of_bloom(n_heads: int) -> None:
    """BLOOM adds slope * j, not -slope * (i - j): they differ by one number per row, which softmax drops."""
    from transformers.models.bloom.modeling_bloom import build_alibi_tensor

    theirs = build_alibi_tensor(torch.ones(1, 30), n_heads, torch.float32).view(n_heads, 1, 30)
    ours = alibi_bias(alibi_slopes(n_heads), 30, 30)[0]  # [n_heads, 30, 30]
    seen = torch.ones(30, 30, dtype=torch.bool).tril()
    difference = ours - theirs
    for query in range(30):
        row = difference[:, query][:, seen[query]]
        torch.testing.assert_close(row, row[:, :1].expand_as(row), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(theirs[:, 0, 1], alibi_slopes(n_heads))
