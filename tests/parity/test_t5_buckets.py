"""T5's buckets against those of `transformers`."""

import pytest
import torch

from vizformer.model.positions import relative_buckets


@pytest.mark.parametrize("both_sides", [True, False])
@pytest.mark.parametrize(
    ("buckets", "furthest"), [(32, 128), (8, 6), (8, 16), (16, 64), (10, 30), (32, 256), (64, 1000)]
)
def test_every_distance(buckets: int, furthest: int, both_sides: bool) -> None:
    from transformers.models.t5.modeling_t5 import T5Attention

    relative = torch.arange(-1500, 1501)[None]
    theirs = T5Attention._relative_position_bucket(relative, both_sides, buckets, furthest)
    assert torch.equal(relative_buckets(relative, buckets, furthest, both_sides=both_sides), theirs)
