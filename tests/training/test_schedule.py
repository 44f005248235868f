"""The learning rate of the paper."""

import numpy as np
import pytest
import torch

from vizformer.training.loss import inverse_square_root, peak, rates, unbounded


def test_the_papers_numbers() -> None:
    """d_model 512, 4000 steps of warm-up: equation 3, worked out."""
    assert inverse_square_root(1, d_model=512, warmup=4000) == pytest.approx(1.7469e-7, rel=1e-4)
    assert inverse_square_root(4000, d_model=512, warmup=4000) == pytest.approx(6.9877e-4, rel=1e-4)
    assert inverse_square_root(100_000, d_model=512, warmup=4000) == pytest.approx(1.3975e-4, rel=1e-4)


def test_its_shape() -> None:
    each = [inverse_square_root(step, d_model=64, warmup=50) for step in range(1, 400)]
    assert each.index(max(each)) == 49  # step 50
    assert each[9] == pytest.approx(10 * each[0])  # a straight line up
    assert each[199] == pytest.approx(each[49] / 2)  # four times the steps, half the rate
    assert inverse_square_root(7, d_model=64, warmup=50, factor=0.5) == pytest.approx(each[6] / 2)


def test_the_peak_is_where_both_curves_meet() -> None:
    assert peak(512, 4000) == pytest.approx(6.99e-4, abs=1e-6)
    steps = range(1, 12_000, 7)
    found, (rising, falling) = rates(steps, 512, 4000), unbounded(steps, 512, 4000)
    np.testing.assert_allclose(found, np.minimum(rising, falling))
    assert found.max() <= peak(512, 4000)


def test_pytorchs_scheduler_gives_the_same() -> None:
    adam = torch.optim.Adam([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    schedule = torch.optim.lr_scheduler.LambdaLR(adam, lambda s: 64**-0.5 * min((s + 1) ** -0.5, (s + 1) * 5**-1.5))
    for expected in rates(range(1, 12), 64, 5):
        assert adam.param_groups[0]["lr"] == pytest.approx(expected)
        adam.step()
        schedule.step()
