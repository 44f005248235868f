"""Window and BigBird masks: exactly the cells of their definitions, each with its reason."""

import math

import pytest
import torch

from vizformer.model import Reason
from vizformer.model.masks import Kept, Mask, bigbird_mask, bigbird_parts, window_mask


def blocked(mask: Mask) -> torch.Tensor:
    """[n, n] True where blocked; bias and reasons must say the same."""
    assert mask.bias.dim() == mask.reason.dim() == 4
    found = mask.reason[0, 0] > 0
    assert torch.equal(mask.bias[0, 0] == -math.inf, found)
    assert bool((mask.bias[0, 0][~found] == 0).all())
    return found


@pytest.mark.parametrize("reach", [0, 1, 2, 9])
def test_window(reach: int) -> None:
    both, back = blocked(window_mask(7, reach)), blocked(window_mask(7, reach, causal=True))
    for i in range(7):
        for j in range(7):
            assert bool(both[i, j]) == (abs(i - j) > reach)
            assert bool(back[i, j]) == (j > i or i - j > reach)
    reasons = window_mask(7, 2, causal=True).reason[0, 0]
    assert reasons[0, 1] == Reason.FUTURE
    assert reasons[6, 0] == Reason.OUTSIDE_WINDOW


def test_bigbird_is_window_and_global_and_so_many_drawn() -> None:
    n, reach, n_global, n_random = 12, 1, 2, 3
    parts = bigbird_parts(n, reach, n_global, n_random, seed=4)
    for i in range(n):
        for j in range(n):
            if i < n_global or j < n_global:
                assert parts[i, j] == Kept.GLOBAL
            elif abs(i - j) <= reach:
                assert parts[i, j] == Kept.WINDOW
    assert ((parts == Kept.RANDOM).sum(dim=1)[n_global:] == n_random).all()
    mask = bigbird_mask(n, reach, n_global, n_random, seed=4)
    assert torch.equal(blocked(mask), parts == Kept.NO)
    assert set(mask.reason.unique().tolist()) == {0, Reason.NOT_CHOSEN}


def test_bigbird_draws_anew_with_another_seed_and_the_same_with_the_same() -> None:
    assert torch.equal(bigbird_parts(16, 1, 1, 2, seed=1), bigbird_parts(16, 1, 1, 2, seed=1))
    assert not torch.equal(bigbird_parts(16, 1, 1, 2, seed=1), bigbird_parts(16, 1, 1, 2, seed=2))


def test_bigbird_draws_what_is_left_and_never_the_future_where_it_is_causal() -> None:
    assert (bigbird_parts(4, 0, 0, 99) > 0).all()
    causal = bigbird_mask(9, 1, 1, 3, seed=0, causal=True)
    assert blocked(causal)[torch.ones(9, 9, dtype=torch.bool).triu(1)].all()
    assert (causal.reason[0, 0][torch.ones(9, 9, dtype=torch.bool).triu(1)] == Reason.FUTURE).all()


def test_without_global_and_random_bigbird_is_a_window() -> None:
    assert torch.equal(blocked(bigbird_mask(8, 2, 0, 0)), blocked(window_mask(8, 2)))
