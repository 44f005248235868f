"""The learning rate of the paper."""

import pytest

from vizformer.training.schedule import inverse_square_root


def test_the_papers_numbers() -> None:
    """d_model 512, 4000 steps of warm-up: equation 3, worked out."""
    assert inverse_square_root(1, d_model=512, warmup=4000) == pytest.approx(1.7469e-7, rel=1e-4)
    assert inverse_square_root(4000, d_model=512, warmup=4000) == pytest.approx(6.9877e-4, rel=1e-4)
    assert inverse_square_root(100_000, d_model=512, warmup=4000) == pytest.approx(1.3975e-4, rel=1e-4)


def test_its_shape() -> None:
    rates = [inverse_square_root(step, d_model=64, warmup=50) for step in range(1, 400)]
    assert rates.index(max(rates)) == 49  # step 50
    assert rates[9] == pytest.approx(10 * rates[0])  # a straight line up
    assert rates[199] == pytest.approx(rates[49] / 2)  # four times the steps, half the rate
    assert inverse_square_root(7, d_model=64, warmup=50, factor=0.5) == pytest.approx(rates[6] / 2)
