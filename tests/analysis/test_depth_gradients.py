"""Gradients of untrained stacks: with the sum and without, norm after or before."""

import numpy as np
import pytest
import torch

from vizformer.analysis.training import depth_gradients as depths


def test_without_sum_and_norm_the_gradient_dies_with_the_depth() -> None:
    bare = [depths.untrained("bare", depth).gradients[0] for depth in (1, 4, 16)]
    assert bare[0] > 10 * bare[1] > 1000 * bare[2]
    for kind in ("post", "pre"):
        deep, flat = (depths.untrained(kind, depth).gradients[0] for depth in (16, 1))
        assert deep > 0.3 * flat


def test_without_the_sum_all_rows_become_the_same_after_two_layers() -> None:
    for kind in ("norm_only", "bare"):
        assert depths.untrained(kind, 2).likeness > 0.99
    post, pre = (depths.untrained(kind, 8).likeness for kind in ("post", "pre"))
    assert pre < post < 0.95
    assert depths.untrained("post", 2).likeness < 0.3


def test_at_the_start_post_norm_has_its_largest_gradients_at_the_end_and_pre_norm_at_the_beginning() -> None:
    post, pre = (depths.untrained(kind, 24).gradients for kind in ("post", "pre"))
    assert post[-6:].mean() > 1.5 * post[:6].mean()
    assert pre[:6].mean() > 1.5 * pre[-6:].mean()


def test_the_same_seed_gives_the_same_and_leaves_other_random_numbers_alone() -> None:
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    first = depths.untrained("post", 2, seed=1).gradients
    assert torch.rand(1) == expected
    np.testing.assert_array_equal(first, depths.untrained("post", 2, seed=1).gradients)
    assert not np.array_equal(first, depths.untrained("post", 2, seed=2).gradients)
    with pytest.raises(ValueError, match="0 layers"):
        depths.untrained("post", 0)


@pytest.mark.sweep
def test_all_depths_are_there_and_compared() -> None:
    by_depth = depths.by_depth()
    assert set(by_depth.gradients) == set(depths.ARRANGEMENTS)
    assert by_depth.times(16) == pytest.approx(by_depth.gradients["post"][4] / by_depth.gradients["bare"][4])
    assert 10 ** depths.powers_of_ten(16) == pytest.approx(by_depth.times(16))
